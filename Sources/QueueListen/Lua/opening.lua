-- Opens and repairs mailboxes. Every entry that uses a mailbox reads its state and checks that the list of messages
-- belongs to it. After tampering, or after Redis has lost data, it gives the mailbox a new epoch: then every cursor is
-- answered with 'reset'. The repaired state is written by entries that write, and by no others.

-- Returns the time in whole ms.
local function read_time()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns the name of a mailbox from the names of its keys, in which ':box:' is as long as ':meta'.
local function extract_name(meta, box)
  return string.sub(box, #meta + 1)
end

-- Returns what the channels of a partition begin with. The id of a process follows, or 'all'.
local function form_channel(meta)
  return string.sub(meta, 1, -5) .. 'wake:'
end

-- Returns the head of the message at this position of the list, from 0.
local function load_head(mail, position)
  return redis.call('LINDEX', mail, string.format('%d', 2 * position))
end

-- Notifies the processes of a channel that a mailbox must be read, whatever they know about it. An error is ignored,
-- because wake-ups may be lost: the ACL rules of the user may forbid the channel.
local function publish_to_read(channel, name)
  redis.pcall('PUBLISH', channel, struct.pack(WAKE_UP_TO_READ, #name, name, 0))
end

-- Checks the number of partitions and the layout of a partition. Returns whether the partition is used for the first
-- time.
local function check_layout(meta, partitions)
  local layout = redis.pcall('HGET', meta, 'partitions')
  if type(layout) == 'table' then refuse({'foreign', meta}) end
  if layout and layout ~= partitions .. LAYOUT then refuse({'partitions', layout}) end
  return not layout
end

-- Writes the number of partitions and the layout of a partition.
local function write_layout(meta, partitions)
  redis.call('HSET', meta, 'partitions', partitions .. LAYOUT)
end

-- Reads the state of a mailbox that exists, but not what follows it.
local function read_state(state, text, box, partitions)
  if text.err then refuse({'foreign', box}) end
  State.read_into(state, text)
  if state.partitions ~= partitions then refuse({'partitions', string.format('%d', state.partitions)}) end
end

-- Fills in the state of a mailbox that does not exist, or whose state was deleted. Only then meta is read.
local function create_state(state, meta, partitions, epoch)
  state.is_partition_new = check_layout(meta, partitions)
  state.partitions, state.epoch, state.is_new = partitions, epoch, true
  state.last, state.tag, state.from, state.from_tag, state.sum, state.from_sum = 0, NO_TAG, 0, NO_TAG, 0, 0
  state.hollow, state.keyed, state.due, state.own_size = 0, 0, 0, 0
end

-- Compares the state of a mailbox with its list, which is not empty. If the list does not match the state, its messages
-- are kept, under a new epoch: every cursor is answered with 'reset'.
local function check_list(state, mail, count, new_epoch)
  if type(count) == 'table' then refuse({'foreign', mail}) end
  local tail = redis.call('LINDEX', mail, '-2')
  if count % 2 == 1 or #tail ~= Head.size then refuse({'foreign', mail}) end
  local head = Head.read(tail)
  if count ~= 2 * (state.last - state.from) or head.index ~= state.last or head.tag ~= state.tag then
    local first = redis.call('LRANGE', mail, '0', '1')
    if #first[1] ~= Head.size then refuse({'foreign', mail}) end
    local first_head = HeadToSum.read(first[1])
    state.epoch, state.last, state.tag, state.sum, state.is_new = new_epoch, head.index, head.tag, head.sum, true
    state.from, state.from_tag, state.from_sum = head.index - count / 2, NO_TAG, first_head.sum - Head.size - #first[2]
    state.hollow, state.due = 0, 0
  end
end

-- Reads a mailbox, checks it, and repairs its state after tampering.
local function open_mailbox(meta, box, mail, partitions, new_epoch)
  local text, count = redis.pcall('HGET', box, 'm'), redis.pcall('LLEN', mail)
  local state = State.new()
  if text then
    read_state(state, text, box, partitions)
    state.rest = state.rest_at <= #text and string.sub(text, state.rest_at) or ''
  else
    create_state(state, meta, partitions, new_epoch)
    state.rest = ''
  end
  if count ~= 0 then
    check_list(state, mail, count, new_epoch)
  elseif state.last > state.from then
    -- Only the list was deleted: a cursor before its end is answered with 'truncated'.
    state.from, state.from_tag, state.from_sum, state.hollow = state.last, state.tag, state.sum, 0
  end
  return state
end

-- Returns the devices of a mailbox. If the mailbox has a new epoch, every device becomes UNAWARE: listen notifies it of
-- the loss, and deletes nothing before it has acknowledged a new position.
local function read_devices(box, state)
  local devices = redis.call('HGET', box, 'd') or ''
  if state.is_new then
    local all, at = '', 1
    while at <= #devices do
      local device = Device.read(devices, at)
      at = device.next_at
      device.index, device.tag = UNAWARE, NO_TAG
      all = all .. Device.write(device)
    end
    devices = all
  end
  return devices
end

-- If a mailbox has a new epoch, writes its devices and notifies all processes: those that wait may no longer be
-- registered, and later sends do not notice that the epoch is new.
local function announce_epoch(meta, box, state)
  if state.is_new then
    local devices = read_devices(box, state)
    if devices ~= '' then redis.call('HSET', box, 'd', devices) end
    local name = extract_name(meta, box)
    publish_to_read(form_channel(meta) .. 'all', name)
  end
end

-- Returns the tag of the message with this index, which is less than that of the last message. Returns false or nil if
-- the message was deleted and the history does not reach back to it.
local function find_tag(box, mail, state, index)
  if index > state.from then
    local head = Head.read(load_head(mail, index - state.from - 1))
    return head.tag
  elseif index == state.from then
    return state.from_tag
  end
  local history = redis.call('HGET', box, 'h') or ''
  local at = #history - 8 * (state.from - index) - 7
  return at > 0 and string.sub(history, -8) == state.from_tag and string.sub(history, at, at + 7)
end

-- Gives a mailbox a new epoch if it has lost the last message that was confirmed to a sender.
local function check_confirmed(box, mail, state, known, new_epoch)
  if known.index > 0 and known.epoch == state.epoch then
    local found = known.index == state.last and state.tag or ''
    if known.index < state.last then
      found = find_tag(box, mail, state, known.index)
    end
    if found and found ~= known.tag then state.epoch, state.is_new = new_epoch, true end
  end
end

-- Repairs a mailbox that a send has found damaged: after tampering, or after Redis has lost data. A mailbox that does
-- not exist is created by the send itself.
-- KEYS   [1] meta  [2] box  [3] mail
-- ARGV   [1] Target  [2] Known, or empty
-- Reply  {'ok'}
-- Refuses as described at LAYOUT
function entry.repair(keys, arguments)
  local meta, box, mail, confirmed = keys[1], keys[2], keys[3], arguments[2]
  local target = Target.read(arguments[1])
  local state = open_mailbox(meta, box, mail, target.partitions, target.new_epoch)
  if confirmed ~= '' then
    local known = Known.read(confirmed)
    check_confirmed(box, mail, state, known, target.new_epoch)
  end
  if state.last == 0 then return {'ok'} end
  redis.call('HSET', box, 'm', State.write(state) .. state.rest)
  if state.is_partition_new then write_layout(meta, state.partitions) end
  announce_epoch(meta, box, state)
  return {'ok'}
end
