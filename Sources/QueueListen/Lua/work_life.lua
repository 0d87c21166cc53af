-- The life of workers. A worker that does not postpone its end is dead: the others find that out, and its jobs wait for
-- them. A worker also learns of jobs that it does not have any more, and lets those go of which it does not know,
-- because Redis has lost their ends.

-- The maximum number of workers that one script finds dead.
local MAX_REAPED = 4
-- The phases of a worker's life: it begins, continues, or leaves.
local WORKER_BEGINS, WORKER_CONTINUES, WORKER_LEAVES = '0', '1', '2'

-- The workers of a mailbox.
local Workers = record {
  -- text: those that are alive, in packed form, without the one that asks. is_alive: whether that one is. dead: the
  -- processes of those that are not, or nil. has_more: there are more of these.
  also = {'text', 'is_alive', 'dead', 'has_more'},
}

-- Separates the workers that are alive from those that are dead.
local function separate_workers(packed, process, now)
  local workers = Workers.new({text = '', is_alive = false, has_more = false})
  local at, count = 1, 0
  while at <= #packed do
    local worker = Waiter.read(packed, at)
    at = worker.next_at
    if worker.process == process then
      workers.is_alive = worker.ends > now
    elseif worker.ends > now or count >= MAX_REAPED then
      workers.text = workers.text .. Waiter.write(worker)
      if worker.ends <= now then workers.has_more = true end
    else
      count = count + 1
      workers.dead = workers.dead or {}
      workers.dead[count] = worker.process
    end
  end
  return workers
end

-- Lets a job wait that a worker has, but does not run. One that was cancelled or finished is done.
local function let_go(all, tag, process, now)
  local text = redis.call('HGET', all.work, JOB_OF .. tag)
  if text then
    local job = Job.read(text)
    if job.state == RUNNING and job.process == process then
      local reason = string.sub(text, job.reason_at)
      put_back(all, job, tag, reason, 0, now)
    elseif (job.state == CANCELLED_JOB or job.state == FINISHED) and job.process == process then
      forget_job(all, tag, job.key, now)
    end
  end
end

-- Lets all jobs of a worker wait, and forgets it.
local function forget_worker(all, process, now)
  local text = redis.call('HGET', all.work, WORKER_OF .. process)
  if text then
    local worker = Worker.new()
    read_worker(worker, text)
    for at = 1, #worker.held, TAG_SIZE do
      let_go(all, string.sub(worker.held, at, at + TAG_SIZE - 1), process, now)
    end
    redis.call('HDEL', all.work, WORKER_OF .. process)
  end
end

-- Returns the tags of a worker's jobs that were cancelled.
local function find_cancelled(work, held)
  local cancelled = ''
  for at = 1, #held, TAG_SIZE do
    local tag = string.sub(held, at, at + TAG_SIZE - 1)
    local text = redis.call('HGET', work, JOB_OF .. tag)
    if text and string.byte(text) == CANCELLED_JOB then cancelled = cancelled .. tag end
  end
  return cancelled
end

-- Compares the jobs that a worker has by its record with those that it knows of, which may run. Returns the tags of
-- those that it has no more.
local function compare_jobs(all, worker, known, process, now)
  local is_known, kept, lost = {}, '', ''
  for at = 1, #known, TAG_SIZE do is_known[string.sub(known, at, at + TAG_SIZE - 1)] = true end
  for at = 1, #worker.held, TAG_SIZE do
    local tag = string.sub(worker.held, at, at + TAG_SIZE - 1)
    if is_known[tag] then
      kept = kept .. tag
      is_known[tag] = nil
    else
      let_go(all, tag, process, now)
    end
  end
  for at = 1, #known, TAG_SIZE do
    local tag = string.sub(known, at, at + TAG_SIZE - 1)
    if is_known[tag] then lost = lost .. tag end
  end
  worker.held = kept
  return lost
end

-- Writes the workers that are alive.
local function write_workers(work, text)
  if text ~= '' then
    redis.call('HSET', work, WORKERS, text)
  else
    redis.call('HDEL', work, WORKERS)
    expire_unused(work)
  end
end

-- Begins, continues or ends the life of a worker, and lets the jobs of dead workers wait for others.
-- KEYS   [1] work  [2] jobs  [3] dead
-- ARGV   [1] process  [2] ms until its end  [3] WORKER_BEGINS, WORKER_CONTINUES or WORKER_LEAVES  [4] the number of the
--        worker's last request that was answered  [5] the tags of the jobs that it runs, or has run and not reported
-- Reply  {'ok', ms since 1970, ms when the next job that waits may be taken or '', the tags of jobs that it has no
--        more, those of jobs that were cancelled, 1 if more workers are dead, else 0}
-- Refuses {'gone'}: the worker has been found dead; and as described at LAYOUT
-- Bounded: the jobs of this worker, and of MAX_REAPED dead ones.
function entry.beat(keys, arguments)
  local process, ttl, phase, number, known = arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]
  local now = read_time()
  local work = keys[1]
  local all = open_jobs(work, keys[2], keys[3])
  local next_time = find_next(keys[2])
  local worker = Worker.new()
  worker.is_known = false
  local text = redis.call('HGET', work, WORKER_OF .. process)
  if text then
    read_worker(worker, text)
    worker.is_known = true
  end
  local workers = separate_workers(redis.call('HGET', work, WORKERS) or '', process, now)
  if phase == WORKER_CONTINUES and not (workers.is_alive and worker.is_known) then return {'gone'} end
  begin_writing(work)
  if workers.dead then
    for _, other in ipairs(workers.dead) do forget_worker(all, other, now) end
  end
  local lost, cancelled = '', ''
  if phase == WORKER_CONTINUES then
    cancelled = find_cancelled(work, worker.held)
    -- The reply of its last request may be on its way: then the worker does not know of the jobs that were taken with
    -- it. A request that it knows and this server does not was lost.
    if tonumber(number) == worker.number - 1 then known = known .. worker.taken end
    if tonumber(number) >= worker.number - 1 then
      lost = compare_jobs(all, worker, known, process, now)
      redis.call('HSET', work, WORKER_OF .. process, Worker.write(worker) .. worker.held)
    end
  elseif phase == WORKER_LEAVES then
    forget_worker(all, process, now)
  elseif phase == WORKER_BEGINS and not worker.is_known then
    local new = Worker.new({number = 0, results = '', taken = ''})
    redis.call('HSET', work, WORKER_OF .. process, Worker.write(new))
    redis.call('PERSIST', work)
  end
  if #all.added > 0 then next_time = '0' end
  if phase ~= WORKER_LEAVES then
    workers.text = workers.text .. struct.pack(Waiter.format, process, now + ttl)
  end
  write_workers(work, workers.text)
  write_waiting(all)
  return {'ok', string.format('%d', now), next_time, lost, cancelled, workers.has_more and 1 or 0}
end
