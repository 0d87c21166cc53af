-- Writes a listen: deletes the messages that all devices have acknowledged, and stores the state of the mailbox and the
-- listening device.

-- The maximum number of messages that one script deletes; MAX_LOOKS if it must read each. Later scripts delete the
-- rest.
local MAX_DROP = 65536
-- The maximum number of tags in the history, with which senders compare the last message that was confirmed to them.
local MAX_HISTORY = 32

-- The messages that a listen deletes.
local Deletion = record {
  -- count: their number. dead_keys: their collapse keys, each followed by the message's index, or nil. history: the
  -- tags of the last deleted messages, if any are deleted.
  also = {'count', 'dead_keys', 'history'},
}

-- Returns the index of the last of the first `count` messages that was sent before `time`; `from` if there is none.
local function find_older(mail, from, count, time)
  local low, high = 0, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    local head = HeadToSent.read(load_head(mail, middle))
    if head.sent < time then low = middle + 1 else high = middle end
  end
  return from + low
end

-- Returns the index of the last message that can be deleted: every device has acknowledged it, and it is not in the
-- backlog for later devices. `mine` is the index that the listening device has acknowledged, `least` the least one of
-- the other devices, or nil.
local function find_cut(mail, state, request, mine, least, now)
  local cut = mine
  if least and least < cut then cut = least end
  cut = math.min(cut, state.last - request.backlog_count, state.from + MAX_DROP)
  if request.backlog_age > 0 and cut > state.from then
    cut = find_older(mail, state.from, cut - state.from, now - request.backlog_age)
  end
  return cut
end

-- Returns the collapse keys of the first `count` messages, each followed by the message's index, or nil if they have
-- none. Subtracts the hollow bytes of these messages from those of the mailbox.
local function collect_dead_keys(mail, state, count)
  local dead_keys, before = nil, state.from_sum
  for first = 0, count - 1, 128 do
    local elements = redis.call('LRANGE', mail, string.format('%d', 2 * first),
      string.format('%d', 2 * math.min(count, first + 128) - 1))
    for i = 1, #elements, 2 do
      local head = HeadToSum.read(elements[i])
      local body = Body.read(elements[i + 1])
      state.hollow = state.hollow - (head.sum - before - Head.size - #elements[i + 1])
      before = head.sum
      if body.key ~= '' then
        dead_keys = dead_keys or {}
        dead_keys[#dead_keys + 1] = body.key
        dead_keys[#dead_keys + 1] = head.index
      end
    end
  end
  return dead_keys
end

-- Returns the history of a mailbox with the tags of the first `count` messages but the last of them. Reads those that
-- are not among the known `tags`.
local function extend_history(box, mail, state, count, tags)
  local history = redis.call('HGET', box, 'h') or ''
  if string.sub(history, -8) ~= state.from_tag then history = state.from_tag end
  for number = math.max(1, count - MAX_HISTORY + 1), count - 1 do
    local tag = tags and tags[state.from + number]
    if not tag then
      local head = Head.read(load_head(mail, number - 1))
      tag = head.tag
    end
    history = history .. tag
  end
  return history
end

-- Removes the messages up to index `cut` from the state, and returns what must be deleted from the list.
local function plan_deletion(mail, box, state, cursor, cut)
  local deletion = Deletion.new({count = 0})
  if cut > state.from then
    if state.keyed > 0 or state.hollow > 0 then
      cut = math.min(cut, state.from + MAX_LOOKS)
      deletion.dead_keys = collect_dead_keys(mail, state, cut - state.from)
    end
    deletion.count = cut - state.from
    deletion.history = extend_history(box, mail, state, deletion.count, cursor.tags)
    if cut == cursor.index and cursor.sum then
      state.from, state.from_tag, state.from_sum = cut, cursor.tag, cursor.sum
    else
      local head = Head.read(load_head(mail, deletion.count - 1))
      state.from, state.from_tag, state.from_sum = head.index, head.tag, head.sum
    end
    deletion.history = string.sub(deletion.history .. state.from_tag, -8 * MAX_HISTORY)
  end
  if cursor.index < state.from then cursor.index, cursor.tag = state.from, state.from_tag end
  return deletion
end

-- Deletes messages from the list. The first write of the script removes something in any case, which Redis allows at
-- maxmemory: acknowledging frees memory.
local function delete_messages(box, mail, deletion)
  if deletion.count > 0 then
    redis.call('LTRIM', mail, string.format('%d', 2 * deletion.count), '-1')
  else
    redis.call('HDEL', box, '')
  end
  if deletion.history then redis.call('HSET', box, 'h', deletion.history) end
end

-- Registers a process in the state of a mailbox until a time, and forgets the registrations that have expired.
local function register_process(state, process, ends, now)
  local kept, at = string.sub(state.rest, 1, state.own_size) .. struct.pack(Waiter.format, process, ends),
    state.own_size + 1
  while at <= #state.rest do
    local waiter = Waiter.read(state.rest, at)
    at = waiter.next_at
    if waiter.process ~= process and waiter.ends > now then kept = kept .. Waiter.write(waiter) end
  end
  state.rest = kept
end

-- Makes the poll of a request the current one of the device.
local function begin_poll(mine, request)
  local kept, at = struct.pack(Poll.format, request.process, request.poll), 1
  while at <= #mine.polls do
    local poll = Poll.read(mine.polls, at)
    at = poll.next_at
    if poll.process ~= request.process and #kept < MAX_POLLS * Poll.size then kept = kept .. Poll.write(poll) end
  end
  mine.polls = kept
end

-- Deletes collapse keys of deleted messages, unless a later message has them. `dead_keys` is a list of keys, each
-- followed by the index of the message. Returns how many it has deleted.
local function delete_keys(box, dead_keys)
  local count = 0
  for i = 1, #dead_keys, 2 do
    local field = 'k:' .. dead_keys[i]
    if tonumber(redis.call('HGET', box, field)) == dead_keys[i + 1] then
      count = count + redis.call('HDEL', box, field)
    end
  end
  return count
end

-- Writes the state of a mailbox and its devices, and sets its time to live. `others` are the other devices in packed
-- form.
local function write_listen(box, mail, state, mine, others, deletion, ttl, is_due, is_freed, now)
  if is_due then state.due = now + math.floor(ttl / 8) elseif is_freed then state.due = 0 end
  if deletion.dead_keys then
    local deleted = delete_keys(box, deletion.dead_keys)
    state.keyed = state.keyed - deleted
  end
  -- It grows with every write, so that a forget that expects an older one does not apply.
  mine.seen = math.max(now, mine.seen + 1)
  redis.call('HSET', box, 'd', others .. Device.write(mine), 'm', State.write(state) .. state.rest)
  if is_due then
    local until_ms = string.format('%d', now + ttl + math.floor(ttl / 8))
    redis.call('PEXPIREAT', box, until_ms)
    if state.last > state.from then redis.call('PEXPIREAT', mail, until_ms) end
  elseif is_freed then
    redis.call('PERSIST', box)
    if state.last > state.from then redis.call('PERSIST', mail) end
  end
end

-- Notifies all processes of a mailbox that has a new epoch, and the process whose poll another one supersedes.
local function announce_listen(meta, box, state, poll)
  if state.is_new or poll.begins and poll.rival then
    local name, channel = extract_name(meta, box), form_channel(meta)
    if state.is_new then
      local growth = Growth.new({epoch = state.epoch, start_index = state.last, start_tag = state.tag,
        end_index = state.last, end_tag = state.tag})
      local packed = Growth.write(growth)
      redis.pcall('PUBLISH', channel .. 'all', struct.pack(WAKE_UP, #name, name, #packed, packed))
    end
    if poll.begins and poll.rival then
      publish_to_read(channel .. poll.rival, name)
    end
  end
end
