-- Listens to a mailbox: one script acknowledges messages, deletes those that all devices have acknowledged, and reads
-- on. If there is nothing to read, it registers the process to be notified.

-- The maximum numbers of devices of a mailbox and of polls that a device stores.
local MAX_DEVICES, MAX_POLLS = 64, 4

-- The devices of a mailbox other than the listening one, without those that have not been seen for `device_ttl`.
local OtherDevices = record {
  -- text: the devices, in packed form. count: their number. least: the least index that one of them has acknowledged.
  also = {'text', 'count', 'least'},
}

-- How the poll of a request relates to the polls of its device.
local PollStatus = record {
  -- begins: it becomes the current one. is_current: it is the current one already. rival: the process of another
  -- current poll.
  also = {'begins', 'is_current', 'rival'},
}

-- The position after which to read.
local Cursor = record {
  -- status: as in the reply of listen. sum: bytes of all messages up to `index`, if known. tags: by index, those of
  -- messages before it that are known; or nil.
  also = {'index', 'tag', 'status', 'sum', 'tags'},
}

-- Returns the request of listen, with the mailbox's own limits if it has any.
local function read_listen_request(text, at, state)
  local request = ListenRequest.read(text, at)
  request.requires_device = request.phase >= REQUIRES_DEVICE
  if request.requires_device then request.phase = request.phase - REQUIRES_DEVICE end
  request.reads_ahead = request.phase >= READS_AHEAD
  if request.reads_ahead then request.phase = request.phase - READS_AHEAD end
  if state.own_size > 0 then
    local limits = Limits.read(state.rest)
    request.ttl, request.backlog_count, request.backlog_age, request.device_ttl =
      limits.ttl, limits.backlog_count, limits.backlog_age, limits.device_ttl
  end
  return request
end

-- Reads the device `mine`, whose name is set, and returns the other ones. If the mailbox does not have it, `mine` keeps
-- its fields.
local function separate_devices(devices, mine, device_ttl, now)
  local others = OtherDevices.new({text = '', count = 0})
  local at = 1
  while at <= #devices do
    local start = at
    local device = Device.read(devices, at)
    at = device.next_at
    if device.name == mine.name then
      mine.index, mine.tag, mine.seen, mine.polls = device.index, device.tag, device.seen, device.polls
    elseif device_ttl == 0 or device.seen + device_ttl > now then
      others.text, others.count = others.text .. string.sub(devices, start, at - 1), others.count + 1
      if not others.least or device.index < others.least then others.least = device.index end
    end
  end
  return others
end

-- Compares the poll of a request with those of the device. A poll that has begun before and is not the current one was
-- superseded, also if its first reply was lost.
local function check_poll(polls, request, state, now)
  local status = PollStatus.new({begins = request.phase == BEGINS, is_current = false})
  local is_known, has_begun, oldest, at = false, false, nil, 1
  while at <= #polls do
    local poll = Poll.read(polls, at)
    at = poll.next_at
    if poll.process == request.process then
      if at == Poll.size + 1 then status.is_current = poll.number == request.poll end
      is_known, has_begun = true, poll.number >= request.poll
    elseif at == Poll.size + 1 then
      status.rival = poll.process
    end
    oldest = poll.number
  end
  if polls ~= '' then
    -- A poll that continues is not stored: Redis has lost its beginning, unless so many others have begun since that it
    -- was dropped.
    if request.phase == CONTINUES and not has_begun
      and (is_known or #polls < MAX_POLLS * Poll.size or oldest < request.poll) then
      status.begins = true
    end
    if not status.is_current
      and (request.phase == CONTINUES and not status.begins or status.begins and has_begun) then
      local position = Position.new({epoch = state.epoch, index = state.from, tag = state.from_tag, now = now})
      refuse({'superseded', Position.write(position)})
    end
  end
  return status
end

-- Compares a cursor of the mailbox's epoch with the messages, and sets its status.
local function compare_cursor(cursor, mail, state)
  if cursor.index > state.last then
    cursor.status = 'forked'
  elseif cursor.index < state.from then
    cursor.status = 'truncated'
  else
    local tag
    if cursor.index == state.last then
      tag, cursor.sum = state.tag, state.sum
    elseif cursor.index == state.from then
      tag = state.from_tag
    else
      local head = Head.read(load_head(mail, cursor.index - state.from - 1))
      tag, cursor.sum = head.tag, head.sum
    end
    if tag ~= cursor.tag then cursor.status = 'forked' end
  end
end

-- Returns the cursor of a request, compared with the mailbox. `mine` is the device.
local function check_cursor(request, mail, state, mine)
  local cursor = Cursor.new({index = request.cursor_index, tag = request.cursor_tag, status = 'ok'})
  if cursor.index < 0 then
    cursor.index, cursor.tag = mine.index or state.from, mine.tag or state.from_tag
    if mine.index == UNAWARE then cursor.status = 'reset' end
  elseif request.cursor_epoch ~= state.epoch then
    cursor.status = 'reset'
  end
  if cursor.status == 'ok' then
    compare_cursor(cursor, mail, state)
  end
  return cursor
end

-- Advances the device to the cursor, which it acknowledges. Moves an invalid cursor to where reading can restart.
-- Returns whether the device is new, and whether it has moved.
local function acknowledge(mine, cursor, state, request)
  local is_mine_new, has_moved = not mine.index, false
  if is_mine_new then mine.index, mine.tag = state.from, state.from_tag end
  if cursor.status == 'ok' then
    -- Monotonic: an older cursor reads again what is still there, and revokes no acknowledgement.
    if cursor.index > mine.index and not request.reads_ahead then
      mine.index, mine.tag, has_moved = cursor.index, cursor.tag, true
    end
  else
    -- The reply may be lost, and the process may end: until the device acknowledges a position after the gap, each
    -- process that begins without a cursor is notified. A truncated device need not be marked, because it is behind the
    -- first message. An invalid acknowledgement or a registration changes nothing.
    if cursor.status ~= 'truncated' and request.phase < ACKNOWLEDGES and mine.index ~= UNAWARE then
      mine.index, has_moved = UNAWARE, true
    end
    cursor.index, cursor.tag = state.from, state.from_tag
  end
  return is_mine_new, has_moved
end

-- Acknowledges messages, deletes those that all devices have acknowledged, and reads on. If there is nothing to read,
-- it registers the process to be notified.
-- KEYS   [1] meta  [2] box  [3] mail
-- ARGV   [1] Target, then ListenRequest  [2] device
-- Reply  {status, Position, elements…}. Statuses: ok; superseded: a newer poll of this device has begun; and, about the
--        cursor: reset (another epoch), forked (the mailbox does not have what the cursor has seen), truncated
--        (messages after it are gone). With these three, the position is where reading can restart.
-- Refuses {'devices'}: there are too many devices; {'unknown'}: the mailbox does not have the device, which the request
--        requires; and as described at LAYOUT
function entry.listen(keys, arguments)
  local meta, box, mail, text = keys[1], keys[2], keys[3], arguments[1]
  local target = Target.read(text)
  local now = read_time()
  local state = open_mailbox(meta, box, mail, target.partitions, target.new_epoch)
  local devices = read_devices(box, state)
  local request = read_listen_request(text, target.request_at, state)
  local mine = Device.new({name = arguments[2], seen = 0, polls = ''})
  local others = separate_devices(devices, mine, request.device_ttl, now)
  if not mine.index and request.requires_device then return {'unknown'} end
  local poll = check_poll(mine.polls, request, state, now)
  if not mine.index and others.count >= MAX_DEVICES then return {'devices'} end

  local cursor = check_cursor(request, mail, state, mine)
  local is_mine_new, has_moved = acknowledge(mine, cursor, state, request)
  local cut = find_cut(mail, state, request, mine.index, others.least, now)
  local deletion = plan_deletion(mail, box, state, cursor, cut)

  local position = Position.new({epoch = state.epoch, index = cursor.index, tag = cursor.tag, now = now})
  local reply = {cursor.status, Position.write(position)}
  if cursor.status == 'ok' then
    append_messages(reply, mail, state, cursor.index - state.from + deletion.count,
      state.last - state.from + deletion.count, request.max_messages, request.max_bytes)
  end
  local is_waiting = #reply == HEADER_SIZE and cursor.status == 'ok' and request.registration > 0
  local is_due, is_freed = request.ttl > 0 and state.due <= now, request.ttl == 0 and state.due > 0
  if is_due or is_freed or state.is_new or deletion.count > 0 or poll.begins or is_mine_new or has_moved or is_waiting
    or request.phase == REGISTERS then
    delete_messages(box, mail, deletion)
    if state.is_partition_new then write_layout(meta, state.partitions) end
    if is_waiting then
      register_process(state, request.process, now + request.registration, now)
    end
    if (poll.begins or is_mine_new) and not poll.is_current then
      begin_poll(mine, request)
    end
    write_listen(box, mail, state, mine, others.text, deletion, request.ttl, is_due, is_freed, now)
    announce_listen(meta, box, state, poll)
  end
  return reply
end
