-- Operations on jobs for operators: listing them, trying failed ones again, cancelling, and pausing all workers.

-- Appends jobs to a reply, as long as it has fewer than MAX_PAGE_BYTES. `tags` is a list, with a time after each tag.
local function append_jobs(reply, work, tags)
  local size = 0
  for i = 1, #tags, 2 do
    if size >= MAX_PAGE_BYTES then break end
    local fields = redis.call('HMGET', work, JOB_OF .. tags[i], MESSAGE_OF .. tags[i])
    if fields[1] and fields[2] then
      reply[#reply + 1] = {tags[i], fields[1], fields[2], tags[i + 1]}
      size = size + #fields[1] + #fields[2]
    end
  end
end

-- Returns the number of jobs that run, and the tags of the first ones, each followed by an empty time.
local function find_running(work, limit)
  local packed, at, count, tags = redis.call('HGET', work, WORKERS) or '', 1, 0, {}
  while at <= #packed do
    local waiter = Waiter.read(packed, at)
    at = waiter.next_at
    local text = redis.call('HGET', work, WORKER_OF .. waiter.process)
    if text then
      local worker = Worker.new()
      read_worker(worker, text)
      for tag_at = 1, math.min(#worker.held, TAG_SIZE * (limit - count)), TAG_SIZE do
        tags[#tags + 1], tags[#tags + 2] = string.sub(worker.held, tag_at, tag_at + TAG_SIZE - 1), ''
      end
      count = count + #worker.held / TAG_SIZE
    end
  end
  return count, tags
end

-- Lists jobs, at most MAX_PAGE_BYTES of them, but always one. Changes nothing.
-- KEYS   [1] work  [2] jobs  [3] dead
-- ARGV   [1] '0': those that wait for a worker, the next one first; '1': those that run; '2': those that have failed
--        for good, the latest first  [2] the maximum number, or 0 for none
-- Reply  {'ok', ms since 1970, number of jobs that wait, number of those that have failed, number of those that run, 1
--        if the workers are paused else 0, {tag, Job with the reason, Body, ms when it may be taken or has
--        failed, or ''}…}
-- Refuses as described at LAYOUT
-- Bounded: 1,000 jobs and MAX_PAGE_BYTES, and the record of each worker.
function entry.list_jobs(keys, arguments)
  local work, jobs, dead, kind, limit = keys[1], keys[2], keys[3], arguments[1], tonumber(arguments[2])
  local now = read_time()
  local all = open_jobs(work, jobs, dead)
  local running, tags = find_running(work, limit)
  local reply = {'ok', string.format('%d', now), redis.call('ZCARD', jobs), all.failed, running,
    redis.call('HEXISTS', work, PAUSED)}
  local last = string.format('%d', limit - 1)
  if limit == 0 then
    tags = {}
  elseif kind == '0' then
    tags = redis.call('ZRANGE', jobs, '0', last, 'WITHSCORES')
  elseif kind == '2' then
    tags = redis.call('ZRANGE', dead, '0', last, 'REV', 'WITHSCORES')
  end
  append_jobs(reply, work, tags)
  return reply
end

-- Lets a failed job wait for a worker again, behind those with its order key. Returns whether that is possible: not too
-- many jobs wait for the key.
local function retry_job(all, job, tag, reason, now)
  local queue = job.key ~= '' and redis.call('HGET', all.work, KEY_OF .. job.key)
  job.state, job.attempts, job.since = WAITING, 0, now
  if queue and #queue >= TAG_SIZE * MAX_PARKED then return false end
  if queue then
    job.state = PARKED
    redis.call('HSET', all.work, KEY_OF .. job.key, queue .. tag)
  else
    if job.key ~= '' then redis.call('HSET', all.work, KEY_OF .. job.key, '') end
    add_waiting(all, tag, 0)
  end
  redis.call('HSET', all.work, JOB_OF .. tag, Job.write(job) .. reason)
  return true
end

-- Tries jobs again that have failed for good.
-- KEYS   [1] work  [2] jobs  [3] dead
-- ARGV   the tags of the jobs, up to 100
-- Reply  for each 1; 0 if it has not failed, or too many jobs wait for its order key
-- Refuses as described at LAYOUT
-- Bounded: 100 jobs.
function entry.retry_jobs(keys, arguments)
  local work, dead = keys[1], keys[3]
  local now = read_time()
  local all = open_jobs(work, keys[2], dead)
  local reply, retried = {}, {}
  begin_writing(work)
  for i, tag in ipairs(arguments) do
    local text = redis.call('HGET', work, JOB_OF .. tag)
    reply[i] = 0
    if text then
      local job = Job.read(text)
      local reason = string.sub(text, job.reason_at)
      if job.state == DEAD then
        local is_possible = retry_job(all, job, tag, reason, now)
        if is_possible then
          reply[i] = 1
          retried[#retried + 1] = tag
        end
      end
    end
  end
  if #retried > 0 then redis.call('ZREM', dead, unpack(retried)) end
  write_waiting(all)
  return reply
end

-- Removes a job that no worker runs.
local function remove_job(all, forgotten, job, tag, now)
  redis.call('HDEL', all.work, JOB_OF .. tag, MESSAGE_OF .. tag)
  if job.state == PARKED then
    local queue = redis.call('HGET', all.work, KEY_OF .. job.key)
    if queue then
      local kept = without(queue, {[tag] = true})
      redis.call('HSET', all.work, KEY_OF .. job.key, kept)
    end
  elseif job.state == DEAD then
    forgotten[#forgotten + 1] = tag
  else
    all.removed[#all.removed + 1] = tag
    release_key(all, job.key, now)
  end
end

-- Cancels jobs. Of one that runs, the worker is told with its next `beat`, and its handler is cancelled.
-- KEYS   [1] work  [2] jobs  [3] dead
-- ARGV   the tags of the jobs, up to 100
-- Reply  for each 1, or 2 if it runs; 0 if it is not known, or done
-- Refuses as described at LAYOUT
-- Bounded: 100 jobs.
function entry.cancel_jobs(keys, arguments)
  local work, dead = keys[1], keys[3]
  local now = read_time()
  local all = open_jobs(work, keys[2], dead)
  local reply, forgotten = {}, {}
  begin_writing(work)
  for i, tag in ipairs(arguments) do
    local text = redis.call('HGET', work, JOB_OF .. tag)
    reply[i] = 0
    if text then
      local job = Job.read(text)
      if job.state == RUNNING or job.state == CANCELLED_JOB then
        local reason = string.sub(text, job.reason_at)
        job.state = CANCELLED_JOB
        redis.call('HSET', work, JOB_OF .. tag, Job.write(job) .. reason)
        reply[i] = 2
      elseif job.state ~= FINISHED then
        remove_job(all, forgotten, job, tag, now)
        reply[i] = 1
      end
    end
  end
  if #forgotten > 0 then redis.call('ZREM', dead, unpack(forgotten)) end
  write_waiting(all)
  expire_unused(work)
  return reply
end

-- Pauses the workers of a mailbox: they take no jobs, and end those that they run. Or lets them continue.
-- KEYS   [1] work  [2] jobs  [3] dead
-- ARGV   [1] '1' to pause, '0' to continue
-- Reply  {'ok', 1 if that changed something, else 0}
-- Refuses as described at LAYOUT
-- Bounded: a field.
function entry.pause_work(keys, arguments)
  local work, changed = keys[1], 0
  open_jobs(work, keys[2], keys[3])
  begin_writing(work)
  if arguments[1] == '1' then
    changed = redis.call('HSET', work, PAUSED, '1')
    redis.call('PERSIST', work)
  else
    changed = redis.call('HDEL', work, PAUSED)
    expire_unused(work)
  end
  return {'ok', changed}
end
