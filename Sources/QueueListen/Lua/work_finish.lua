-- Finishing a job together with its effect: a script of the application that runs at most once for each job.

-- Looks whether a worker may finish a job. The first part of each script that finishes one: the effect follows, and
-- then the record of the job is written, all in the same script.
--
-- KEYS: those of the effect, and after them
--   [-1] work
-- ARGV: those of the effect, and after them
--   [-3] process: the worker
--   [-2] tag: of the job
--   [-1] fence: with which the worker has taken it
-- Bounded: a field, and the effect of the application.
-- Reply: the record to write then, with the state FINISHED; {'done'} if that has happened before; {'lost'} if the
-- worker does not have the job any more, or it was cancelled; {'foreign', work}.
function entry.finish_job(keys, arguments)
  local work = keys[#keys]
  local process, tag, fence = arguments[#arguments - 2], arguments[#arguments - 1], tonumber(arguments[#arguments])
  local text = redis.pcall('HGET', work, JOB_OF .. tag)
  if type(text) == 'table' then refuse({'foreign', work}) end
  if not text then return {'lost'} end
  local job = Job.read(text)
  local reason = string.sub(text, job.reason_at)
  if job.process ~= process or job.fence ~= fence then return {'lost'} end
  if job.state == FINISHED then return {'done'} end
  if job.state ~= RUNNING then return {'lost'} end
  begin_writing(work)
  job.state = FINISHED
  return Job.write(job) .. reason
end
