-- The jobs of a mailbox: messages that workers have taken out of it, kept until a worker is done with them.
-- Jobs with the same order key are run one at a time, in order.
--
-- A job that waits is written where a script ends: first those that are added, then those that are removed. While a
-- slot moves to another node, a key that has vanished in a script cannot be used again by it.

-- The keys of the jobs of a mailbox.
-- work  hash  f          the last fence
--             c          WorkPosition
--             x          '1' while the workers are paused: nothing is taken
--             p          the workers (Waiter: the process, and when its life ends), one after the other
--             w:PROCESS  Worker, then the tags of the jobs that it runs
--             j:TAG      Job, then the reason of its last failure
--             m:TAG      the message without its head, which Job has: Body with the envelope, written once
--             o:KEY      the tags of the jobs that wait for this order key, the oldest first; it is there while a job
--                        with the key is not done
-- jobs  sorted set  the tags of the jobs that wait for a worker, by ms when they may be taken
-- dead  sorted set  the tags of the jobs that have failed for good, by ms

-- The fields of the hash, and what others begin with.
local FENCE, POSITION, PAUSED, WORKERS = 'f', 'c', 'x', 'p'
local WORKER_OF, JOB_OF, MESSAGE_OF, KEY_OF = 'w:', 'j:', 'm:', 'o:'
-- The size of a tag.
local TAG_SIZE = 8
-- The maximum number of jobs that wait for one order key: beyond it, nothing is taken until one is done.
local MAX_PARKED = 1024
-- The time in ms for which the last fence is kept without workers and jobs.
local FENCE_LIFETIME = 86400000
-- The maximum number of failed jobs that one script forgets.
local MAX_FORGOTTEN = 100

-- A worker. The tags of its jobs follow.
local Worker = record {
  format = '<dHc0Hc0',
  'number',   -- of its last request
  'results',  -- of the ends in that request: '1' or '0' for each
  'taken',    -- the tags of the jobs that it has taken with it
  also = {'held_at', 'held', 'is_known'},
  next = 'held_at',
}

-- A job. The reason of its last failure follows.
local Job = record {
  format = '<BHddc16c27Bc0',
  'state',     -- WAITING, PARKED, RUNNING, CANCELLED_JOB, DEAD or FINISHED
  'attempts',  -- how often it was taken
  'fence',     -- of the last time
  'since',     -- ms of the last change
  'process',   -- that has taken it last
  'head',      -- Head of the message
  'key',       -- its order key, which may be empty
  also = {'reason_at'},
  next = 'reason_at',
}
-- WAITING for a worker; PARKED until the earlier jobs with its order key are done; RUNNING; CANCELLED_JOB: it was
-- cancelled while it runs; DEAD: it has failed for good; FINISHED: it runs, and is done whatever its worker reports.
local WAITING, PARKED, RUNNING, CANCELLED_JOB, DEAD, FINISHED = 0, 1, 2, 3, 4, 5
-- No process.
local NOBODY = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

-- The jobs of a mailbox, as a script has opened them.
local Jobs = record {
  -- work, jobs, dead: the keys. failed: the number of jobs in `dead`. added: what it adds to `jobs`, a time and a tag
  -- for each. removed: the tags that it removes from it.
  also = {'work', 'jobs', 'dead', 'failed', 'added', 'removed'},
}

-- Reads the record of a worker.
local function read_worker(worker, text)
  Worker.read_into(worker, text)
  worker.held = string.sub(text, worker.held_at)
end

-- Opens the jobs of a mailbox. Their keys may be of another program.
local function open_jobs(work, jobs, dead)
  local failed = redis.pcall('ZCARD', dead)
  if type(failed) == 'table' then refuse({'foreign', dead}) end
  if type(redis.pcall('HEXISTS', work, PAUSED)) == 'table' then refuse({'foreign', work}) end
  if type(redis.pcall('ZCARD', jobs)) == 'table' then refuse({'foreign', jobs}) end
  local all = Jobs.new({work = work, jobs = jobs, dead = dead, failed = failed, added = {}, removed = {}})
  return all
end

-- Lets the first write of a script remove something: then Redis allows all of them at maxmemory.
local function begin_writing(work)
  redis.call('HDEL', work, '')
end

-- Lets a job wait until a time; 0: it may be taken at once, before others.
local function add_waiting(all, tag, time)
  all.added[#all.added + 1] = string.format('%d', time)
  all.added[#all.added + 1] = tag
end

-- Returns the ms when the next job that waits may be taken, as text, or '' if there is none.
local function find_next(jobs)
  local first = redis.call('ZRANGEBYSCORE', jobs, '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
  return first[2] and string.format('%d', first[2]) or ''
end

-- Without workers, jobs and a pause, the last fence and the position are kept for some time.
local function expire_unused(work)
  if redis.call('HLEN', work) <= 2 and redis.call('HEXISTS', work, FENCE) == 1 then
    redis.call('PEXPIRE', work, string.format('%d', FENCE_LIFETIME))
  end
end

-- Writes which jobs wait.
local function write_waiting(all)
  if #all.added > 0 then redis.call('ZADD', all.jobs, unpack(all.added)) end
  if #all.removed > 0 then redis.call('ZREM', all.jobs, unpack(all.removed)) end
end

-- Returns a list of tags without those in a set.
local function without(tags, set)
  local kept = {}
  for at = 1, #tags, TAG_SIZE do
    local tag = string.sub(tags, at, at + TAG_SIZE - 1)
    if not set[tag] then kept[#kept + 1] = tag end
  end
  return table.concat(kept)
end

-- Lets the next job with an order key wait for a worker.
local function release_key(all, key, now)
  if key ~= '' then
    local queue, text = redis.call('HGET', all.work, KEY_OF .. key) or '', nil
    while queue ~= '' and not text do
      local tag = string.sub(queue, 1, TAG_SIZE)
      text, queue = redis.call('HGET', all.work, JOB_OF .. tag), string.sub(queue, TAG_SIZE + 1)
      if text then
        local job = Job.read(text)
        local reason = string.sub(text, job.reason_at)
        job.state, job.since = WAITING, now
        redis.call('HSET', all.work, JOB_OF .. tag, Job.write(job) .. reason, KEY_OF .. key, queue)
        add_waiting(all, tag, 0)
      end
    end
    if not text then redis.call('HDEL', all.work, KEY_OF .. key) end
  end
end

-- Forgets a job that is done, or was cancelled, or whose time is over, and that had its order key.
local function forget_job(all, tag, key, now)
  redis.call('HDEL', all.work, JOB_OF .. tag, MESSAGE_OF .. tag)
  release_key(all, key, now)
end

-- Lets a job wait that was taken before.
local function put_back(all, job, tag, reason, time, now)
  job.state, job.since, job.process = WAITING, now, NOBODY
  redis.call('HSET', all.work, JOB_OF .. tag, Job.write(job) .. reason)
  add_waiting(all, tag, time)
end

-- Records that a job has failed for good, and forgets the oldest ones beyond the maximum.
local function give_up(all, job, tag, reason, maximum, now)
  job.state, job.since, job.process = DEAD, now, NOBODY
  if maximum == 0 then
    redis.call('HDEL', all.work, JOB_OF .. tag, MESSAGE_OF .. tag)
  else
    redis.call('HSET', all.work, JOB_OF .. tag, Job.write(job) .. reason)
    redis.call('ZADD', all.dead, string.format('%d', now), tag)
    all.failed = all.failed + 1
  end
  local count = math.min(all.failed - maximum, MAX_FORGOTTEN)
  if count > 0 then
    local oldest = redis.call('ZRANGE', all.dead, '0', string.format('%d', count - 1))
    for _, old in ipairs(oldest) do
      redis.call('HDEL', all.work, JOB_OF .. old, MESSAGE_OF .. old)
    end
    redis.call('ZREM', all.dead, unpack(oldest))
    all.failed = all.failed - count
  end
end
