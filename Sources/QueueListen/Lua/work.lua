-- Workers share a mailbox. `work` takes messages out of it, in order, as a device that has acknowledged them, and keeps
-- each as a job (jobs.lua) until a worker is done with it. What becomes of the jobs of a worker that dies is in
-- work_life.lua.

-- The name of the device that all workers of a mailbox are together.
local DEVICE = 'workers'
-- The maximum number of jobs besides those that have failed for good. With more, messages stay in the mailbox.
local MAX_JOBS = 100000
-- The time in ms after which a worker asks again that may take nothing of what there is.
local BLOCKED_PAUSE = 1000
-- The ms after which the device is written although nothing has changed, so that the mailbox does not forget it.
local MAX_UNSEEN = 3600000
-- The bytes of Body before its key.
local BODY_SIZE = 7

-- What the workers have taken of the mailbox. The mailbox may have lost what it knows of them, or of itself.
local WorkPosition = record {
  format = '<dc8d',
  'index', 'tag',  -- of the last message that was taken
  'unsure',        -- messages up to this index may be jobs already
}

-- What a worker reports about a job that it has run. The reason follows.
local JobEnd = record {
  format = '<c8dBd',
  'tag', 'fence',
  'outcome',  -- DONE, RETRY, RETURN, GIVE_UP or HAD_EFFECT
  'pause',    -- ms until it may be taken again
  also = {'reason_at'},
  next = 'reason_at',
}
-- DONE; RETRY: it has failed, and is taken again; RETURN: it was not tried; GIVE_UP: it has failed for good;
-- HAD_EFFECT: it was finished with its effect. Then it is done, or Redis has lost both, and it is taken again.
local DONE, RETRY, RETURN, GIVE_UP, HAD_EFFECT = 0, 1, 2, 3, 4

-- The request of work.
local WorkRequest = record {
  format = '<c16dddddH',
  'process',    -- 16 characters
  'number',     -- of the request, which grows
  'fence',      -- the highest one that the worker has seen
  'max_jobs',   -- maximum number of jobs to take
  'max_bytes',  -- maximum number of bytes, but always one job
  'max_dead',   -- maximum number of jobs that have failed for good; the oldest are forgotten
  'ends',       -- number of ends, which follow as arguments
}

-- A job that was taken: two elements of a reply, of which this is the first one. Body with the envelope is the other.
local TakenJob = record { format = '<Hdc27', 'attempts', 'fence', 'head' }

-- The jobs that a script takes.
local Harvest = record {
  -- reply: the elements of the reply. room, bytes: what is left of the maximum. taken: the tags. fence: the last one.
  -- looks: what is left of the messages and jobs that it looks at without taking them. next: ms when to ask again for
  -- jobs that wait, or nil. is_blocked: there are messages that may not be taken.
  also = {'reply', 'room', 'bytes', 'looks', 'taken', 'fence', 'next', 'now', 'process', 'is_blocked'},
}

-- Ends a job that a worker has run. Returns whether the worker had it.
local function end_job(all, request, argument, now)
  local ended = JobEnd.read(argument)
  local reason = string.sub(argument, ended.reason_at)
  local text, is_mine = redis.call('HGET', all.work, JOB_OF .. ended.tag), false
  if text then
    local job = Job.read(text)
    local is_over = job.state == CANCELLED_JOB or job.state == FINISHED
    is_mine = (job.state == RUNNING or is_over) and job.process == request.process and job.fence == ended.fence
    if is_mine and (ended.outcome == DONE or is_over) then
      forget_job(all, ended.tag, job.key, now)
    elseif is_mine and ended.outcome == GIVE_UP then
      give_up(all, job, ended.tag, reason, request.max_dead, now)
      release_key(all, job.key, now)
    elseif is_mine and ended.outcome == RETRY then
      put_back(all, job, ended.tag, reason, now + ended.pause, now)
    elseif is_mine and (ended.outcome == RETURN or ended.outcome == HAD_EFFECT) then
      job.attempts, reason = job.attempts - 1, string.sub(text, job.reason_at)
      put_back(all, job, ended.tag, reason, 0, now)
    end
  end
  return is_mine, ended.tag
end

-- Ends the jobs that the arguments of a request report. Notes the results in the record of the worker.
local function end_jobs(worker, all, request, arguments, now)
  local results, ended = {}, {}
  for i = 1, request.ends do
    local is_mine, tag = end_job(all, request, arguments[2 + i], now)
    results[i] = is_mine and '1' or '0'
    -- The worker may run a job again of which it reports an earlier run, which was lost.
    if is_mine then ended[tag] = true end
  end
  worker.results = table.concat(results)
  if request.ends > 0 then worker.held = without(worker.held, ended) end
end

-- Lets a worker run a job. `new_body`: `body` if it is not stored yet, or nil. A body is not joined with anything: Lua
-- looks for each new text among those whose samples are equal, as those of similar messages are.
local function start_job(harvest, all, job, tag, body, new_body, reason)
  harvest.fence = math.max(harvest.fence + 1, harvest.now * 1000)
  job.state, job.attempts, job.fence, job.since = RUNNING, job.attempts + 1, harvest.fence, harvest.now
  job.process = harvest.process
  if new_body then
    redis.call('HSET', all.work, JOB_OF .. tag, Job.write(job) .. reason, MESSAGE_OF .. tag, new_body)
  else
    redis.call('HSET', all.work, JOB_OF .. tag, Job.write(job) .. reason)
  end
  harvest.reply[#harvest.reply + 1] = struct.pack(TakenJob.format, job.attempts, job.fence, job.head)
  harvest.reply[#harvest.reply + 1] = body
  harvest.room, harvest.bytes = harvest.room - 1, harvest.bytes - Head.size - #body
  harvest.taken[#harvest.taken + 1] = tag
end

-- Returns whether the time of a message is over.
local function is_message_over(head_text, body, now)
  local head = Head.read(head_text)
  local life = struct.unpack(BODY_LIFE, body)
  return life > 0 and head.sent + life <= now
end

-- Takes a job that has waited.
local function take_job(harvest, all, tag)
  local fields = redis.call('HMGET', all.work, JOB_OF .. tag, MESSAGE_OF .. tag)
  if fields[1] and fields[2] then
    local job = Job.read(fields[1])
    if job.state == WAITING then
      local is_over = is_message_over(job.head, fields[2], harvest.now)
      if is_over then
        forget_job(all, tag, job.key, harvest.now)
        harvest.looks = harvest.looks - 1
      else
        local reason = string.sub(fields[1], job.reason_at)
        start_job(harvest, all, job, tag, fields[2], nil, reason)
      end
    end
  end
end

-- Takes jobs that this script lets wait, if they may be taken now. They may let others wait.
local function take_added(harvest, all)
  local kept, i = {}, 1
  while i < #all.added do
    local time, tag = tonumber(all.added[i]), all.added[i + 1]
    if time <= harvest.now and harvest.room > 0 and harvest.bytes > 0 and harvest.looks > 0 then
      take_job(harvest, all, tag)
    else
      kept[#kept + 1], kept[#kept + 2] = all.added[i], tag
      if not harvest.next or time < harvest.next then harvest.next = time end
    end
    i = i + 2
  end
  all.added = kept
end

-- Takes jobs that have waited long enough.
local function take_waiting(harvest, all)
  local limit = harvest.room + 1
  local found = redis.call('ZRANGEBYSCORE', all.jobs, '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0',
    string.format('%d', limit))
  for i = 1, #found, 2 do
    local time, tag = tonumber(found[i + 1]), found[i]
    if time <= harvest.now and harvest.room > 0 and harvest.bytes > 0 then
      all.removed[#all.removed + 1] = tag
      take_job(harvest, all, tag)
    else
      harvest.next = time
      break
    end
  end
  -- The time of some was over, and there may be more.
  if not harvest.next and #found == 2 * limit then harvest.next = harvest.now end
end

-- Makes a job of a message of the mailbox: a worker runs it, or it waits for its order key. Returns false if too many
-- jobs wait for that. A message that is too short for the format is no job.
local function take_message(harvest, all, sent, head, body, unsure)
  local life, key_size, has_room = 0, 0, true
  if #body >= BODY_SIZE then life, key_size = struct.unpack('<I6B', body) end
  local is_whole = sent.kind == MESSAGE and #body >= BODY_SIZE + key_size
  local is_job = sent.index <= unsure and redis.call('HEXISTS', all.work, JOB_OF .. sent.tag) == 1
  if is_whole and not is_job and (life == 0 or sent.sent + life > harvest.now) then
    local key = string.match(body, '^id=[^\n]*\norder=([^\n]*)\n', BODY_SIZE + 1 + key_size) or ''
    key = string.sub(key, 1, 255)
    local job = Job.new({state = PARKED, attempts = 0, fence = 0, since = harvest.now, process = NOBODY, head = head,
      key = key})
    local queue = key ~= '' and redis.call('HGET', all.work, KEY_OF .. key)
    if queue and #queue >= TAG_SIZE * MAX_PARKED then
      has_room = false
    elseif queue then
      redis.call('HSET', all.work, KEY_OF .. key, queue .. sent.tag, JOB_OF .. sent.tag, Job.write(job),
        MESSAGE_OF .. sent.tag, body)
      harvest.bytes = harvest.bytes - Head.size - #body
    else
      if key ~= '' then redis.call('HSET', all.work, KEY_OF .. key, '') end
      start_job(harvest, all, job, sent.tag, body, body, '')
    end
  end
  return has_room
end

-- Takes messages of the mailbox after the cursor, which it advances. Reads in pieces whose size is estimated from the
-- average, because one message may be large.
local function take_messages(harvest, all, mail, state, cursor, unsure)
  local at, stop = cursor.index - state.from, state.last - state.from
  cursor.tags = {}
  local average = at < stop and math.max(1, (state.sum - state.from_sum - state.hollow) / stop) or 1
  while harvest.room > 0 and harvest.bytes > 0 and harvest.looks > 0 and at < stop do
    local count = math.max(1, math.min(harvest.room, 64, math.floor(harvest.bytes / average), stop - at))
    local elements = redis.call('LRANGE', mail, string.format('%d', 2 * at), string.format('%d', 2 * (at + count) - 1))
    if #elements == 0 then break end
    for i = 1, #elements, 2 do
      local head = Head.read(elements[i])
      local has_room = take_message(harvest, all, head, elements[i], elements[i + 1], unsure)
      if not has_room then
        harvest.looks, harvest.is_blocked = 0, true
        break
      end
      cursor.index, cursor.tag, cursor.sum, at = head.index, head.tag, head.sum, at + 1
      cursor.tags[head.index] = head.tag
      harvest.looks = harvest.looks - 1
      if harvest.room <= 0 or harvest.bytes <= 0 or harvest.looks <= 0 then break end
    end
  end
end

-- Takes jobs that have waited long enough, and messages if there are not too many jobs.
local function take_jobs(harvest, all, mail, state, cursor, unsure)
  if harvest.room > 0 and not harvest.is_blocked then
    take_waiting(harvest, all)
    take_added(harvest, all)
    -- A job has two fields.
    if redis.call('HLEN', all.work) < 2 * (MAX_JOBS + all.failed) then
      take_messages(harvest, all, mail, state, cursor, unsure)
    else
      harvest.is_blocked = true
    end
  end
  if harvest.is_blocked and (not harvest.next or harvest.next > harvest.now + BLOCKED_PAUSE) then
    harvest.next = harvest.now + BLOCKED_PAUSE
  end
end

-- Finds the position of the workers in the mailbox, which may have lost messages or what it knows about its devices.
local function find_position(position, text, mail, state, mine)
  position.index, position.tag, position.unsure = mine.index or UNAWARE, mine.tag or NO_TAG, 0
  if text then WorkPosition.read_into(position, text) end
  local cursor = Cursor.new({index = position.index, tag = position.tag, status = 'ok'})
  compare_cursor(cursor, mail, state)
  if cursor.status ~= 'ok' then
    cursor.index, cursor.tag, cursor.sum = state.from, state.from_tag, nil
    if text then position.unsure = state.last end
  end
  return cursor
end

-- Advances the device of the workers in the mailbox, deletes what all devices have acknowledged, and registers the
-- worker to be notified if it can take more than there is. `others` are the other devices.
local function write_progress(meta, box, mail, state, mine, others, cursor, request, is_waiting, now)
  local has_moved = cursor.index ~= mine.index
  mine.index, mine.tag = cursor.index, cursor.tag
  local cut = find_cut(mail, state, request, mine.index, others.least, now)
  local deletion = plan_deletion(mail, box, state, cursor, cut)
  local is_due, is_freed = request.ttl > 0 and state.due <= now, request.ttl == 0 and state.due > 0
  -- The device would be forgotten.
  local is_old = request.device_ttl > 0 and mine.seen + math.min(request.device_ttl / 4, MAX_UNSEEN) <= now
  if has_moved or is_waiting or is_old or is_due or is_freed or state.is_new or deletion.count > 0 then
    delete_messages(box, mail, deletion)
    if state.is_partition_new then write_layout(meta, state.partitions) end
    if is_waiting then register_process(state, request.process, now + request.registration, now) end
    write_listen(box, mail, state, mine, others.text, deletion, request.ttl, is_due, is_freed, now)
    local poll = PollStatus.new({begins = false, is_current = true})
    announce_listen(meta, box, state, poll)
  end
end

-- Appends the jobs of a request that was answered before to the reply, as far as the worker still runs them.
local function repeat_jobs(reply, work, tags, process)
  for at = 1, #tags, TAG_SIZE do
    local tag = string.sub(tags, at, at + TAG_SIZE - 1)
    local fields = redis.call('HMGET', work, JOB_OF .. tag, MESSAGE_OF .. tag)
    if fields[1] and fields[2] then
      local job = Job.read(fields[1])
      if job.state == RUNNING and job.process == process then
        reply[#reply + 1] = struct.pack(TakenJob.format, job.attempts, job.fence, job.head)
        reply[#reply + 1] = fields[2]
      end
    end
  end
end

-- Ends jobs of a worker, and takes others: first those that have waited, then new messages. If it can take more than
-- there is, it registers the worker to be notified of the next message.
-- KEYS   [1] meta  [2] box  [3] mail  [4] work  [5] jobs  [6] dead
-- ARGV   [1] Target, then ListenRequest: the process to notify, its registration, and limits  [2] WorkRequest. Then
--        JobEnd of each end, with its reason
-- Reply  {'ok', ms since 1970, ms when to ask again for jobs that wait or '', 1 if there are more messages else 0,
--        for each end '1' or '0': the worker did not have the job any more, TakenJob and Body of each job…}
-- Refuses {'gone'}: the worker has been found dead, or has not begun; {'stale'}: a later request was answered;
--        {'devices'}: there are too many devices; and as described at LAYOUT
-- Bounded: max_jobs, the ends, and MAX_LOOKS messages and jobs that are not taken.
function entry.work(keys, arguments)
  local meta, box, mail, work = keys[1], keys[2], keys[3], keys[4]
  local target = Target.read(arguments[1])
  local request = WorkRequest.read(arguments[2])
  local now = read_time()
  local state = open_mailbox(meta, box, mail, target.partitions, target.new_epoch)
  local listen = read_listen_request(arguments[1], target.request_at, state)
  local all = open_jobs(work, keys[5], keys[6])
  local fields = redis.call('HMGET', work, WORKER_OF .. request.process, FENCE, PAUSED, POSITION)
  if not fields[1] then return {'gone'} end
  local worker = Worker.new()
  read_worker(worker, fields[1])
  if request.number < worker.number then return {'stale'} end
  local reply = {'ok', string.format('%d', now), '', 1, worker.results}
  if request.number == worker.number then
    repeat_jobs(reply, work, worker.taken, request.process)
    return reply
  end
  local devices = read_devices(box, state)
  local mine = Device.new({name = DEVICE, seen = 0, polls = ''})
  local others = separate_devices(devices, mine, listen.device_ttl, now)
  if not mine.index and others.count >= MAX_DEVICES then return {'devices'} end
  local position = WorkPosition.new()
  local cursor = find_position(position, fields[4], mail, state, mine)

  local waiting = find_next(keys[5])
  if request.max_jobs > 0 then waiting = '' end
  begin_writing(work)
  end_jobs(worker, all, request, arguments, now)
  local harvest = Harvest.new({reply = reply, room = request.max_jobs, bytes = request.max_bytes, looks = MAX_LOOKS,
    taken = {}, fence = math.max(tonumber(fields[2] or 0), request.fence), now = now, process = request.process,
    is_blocked = fields[3] == '1'})
  take_jobs(harvest, all, mail, state, cursor, position.unsure)
  local has_more = cursor.index < state.last and not harvest.is_blocked
  local is_waiting = harvest.room > 0 and not has_more and not harvest.is_blocked and listen.registration > 0
  write_progress(meta, box, mail, state, mine, others, cursor, listen, is_waiting, now)
  worker.number, worker.taken = request.number, table.concat(harvest.taken)
  worker.held = worker.held .. worker.taken
  position.index, position.tag = cursor.index, cursor.tag
  redis.call('HSET', work, FENCE, string.format('%.0f', harvest.fence), POSITION, WorkPosition.write(position),
    WORKER_OF .. request.process, Worker.write(worker) .. worker.held)
  if request.max_jobs == 0 and #all.added > 0 then waiting = '0' end
  write_waiting(all)
  reply[3] = harvest.next and string.format('%d', harvest.next) or waiting
  reply[4], reply[5] = has_more and 1 or 0, worker.results
  return reply
end
