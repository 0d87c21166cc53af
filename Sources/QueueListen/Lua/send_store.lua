-- Writes a send: its answer, the messages, empty messages in place of those with the same collapse keys, the states of
-- the mailboxes, and the wake-ups. A mailbox that needs more than a new state is a table here, with the fields of its
-- state and of its limits.

-- The maximum number of bytes of messages in one wake-up, and the bytes of all wake-ups of a send from which on they
-- contain no messages.
local MAX_WAKE_UP, MAX_WAKE_UPS = 1024, 65536

-- The wake-ups of a send.
local WakeUps = record {
  -- lists: the wake-ups of each process, or nil. bytes: of the wake-ups of processes, together.
  also = {'lists', 'bytes'},
}

-- Stores the answer to a request. Redis refuses this first write at maxmemory, so that nothing is written then. The
-- expiry is set again when half of the time has passed.
local function store_answer(sent, request, expiry_set, results, now)
  local is_renewed = expiry_set + request.answer_ttl / 2 < now
  redis.call('HSET', sent, request.place,
    struct.pack(Answer.format .. 'c0', request.number, is_renewed and now or expiry_set, request.fingerprint, results))
  if is_renewed then redis.call('PEXPIRE', sent, string.format('%d', request.answer_ttl)) end
end

-- Stores the only message of a send to one mailbox that needs nothing but a new state, and ends the script. The usual
-- send, without tables. It takes the length of the list from the reply to RPUSH: to ask for it before would cost 3,000
-- instructions more. If it is another one than the state says, the message is taken back. As the first write, RPUSH is
-- refused at maxmemory.
local function store_alone(sent, box, mail, request, expiry_set, reply, head, body, state, now)
  local count = redis.pcall('RPUSH', mail, head, body)
  if count == 2 * (state.last - state.from) then
    store_answer(sent, request, expiry_set, reply, now)
    redis.call('HSET', box, 'm', State.write(state))
    refuse(reply)
  end
  if type(count) == 'table' then
    -- Refused: by Redis, if the list is as expected.
    check_length(mail, state.last - state.from - 1, 1)
    redis.call('RPUSH', mail, head, body)
  end
  redis.call('LTRIM', mail, '0', '-3')
  refuse({'damaged', 1})
end

-- Appends the messages to the mailboxes, and writes the states of those that need nothing else. `body` is the second
-- element of the first message.
local function store_messages(writes, keys, body, recipients)
  for number = 1, recipients do
    local elements, state = writes[2 * number - 1], writes[2 * number]
    if #elements == Head.size then
      redis.call('RPUSH', keys[2 * number + 2], elements, body)
    else
      redis.call('RPUSH', keys[2 * number + 2], unpack(elements))
    end
    if state then redis.call('HSET', keys[2 * number + 1], 'm', state) end
  end
end

-- Replaces the message with this index by an empty one, if it has this collapse key.
local function empty_message(box, key, index)
  -- The dropped messages are still in the list.
  local at = 2 * (box.drop + index - box.from - 1)
  local found = redis.call('LRANGE', box.mail, string.format('%d', at), string.format('%d', at + 1))
  local head = Head.read(found[1])
  local body = Body.read(found[2])
  -- After tampering it may be another message.
  if head.kind == MESSAGE and head.index == index and body.key == key then
    local empty = struct.pack(Body.format, 0, 0, '')
    head.kind = EMPTY
    redis.call('LSET', box.mail, string.format('%d', at), Head.write(head))
    redis.call('LSET', box.mail, string.format('%d', at + 1), empty)
    box.hollow = box.hollow + #found[2] - #empty
  end
end

-- Replaces the messages that have the collapse keys of these new ones, and stores the indices of the new ones.
local function collapse_keys(box, elements)
  for i = 2, #elements, 2 do
    local body = Body.read(elements[i])
    if body.key ~= '' then
      local field, index = 'k:' .. body.key, box.base + i / 2
      local older = tonumber(redis.call('HGET', box.box, field) or 0) or 0
      -- After tampering it may be this message, or one after it.
      if older > box.from and older < index then
        empty_message(box, body.key, older)
      end
      box.keys = true
      box.keyed = box.keyed + redis.call('HSET', box.box, field, string.format('%d', index))
    end
  end
end

-- Deletes the collapse keys of dropped messages, and replaces messages that have the collapse keys of new ones.
local function collapse_messages(plan, has_keys, body)
  for number, box in pairs(plan.boxes) do
    -- The first write removes something: Redis allows that at maxmemory.
    if box.drop > 0 then redis.call('HDEL', box.box, '') end
    if box.old_keys then
      local deleted = delete_keys(box.box, box.old_keys)
      box.keyed = box.keyed - deleted
    end
    if has_keys == 1 then
      local elements = plan.writes[2 * number - 1]
      if type(elements) == 'string' then elements = {elements, body} end
      collapse_keys(box, elements)
    end
  end
end

-- Deletes the dropped messages of a mailbox, writes its state, and sets its time to live.
local function write_box(box, partitions, now)
  local is_due, is_freed = box.ttl > 0 and box.due <= now, box.ttl == 0 and box.due > 0
  if is_due then box.due = now + math.floor(box.ttl / 8) elseif is_freed then box.due = 0 end
  -- After the new messages: an empty list would disappear, and could not be used again while its slot is being moved.
  if box.drop > 0 then redis.call('LTRIM', box.mail, string.format('%d', 2 * box.drop), '-1') end
  local has_list = box.last > box.from
  if box.last > 0 then
    redis.call('HSET', box.box, 'm', struct.pack(State.format, partitions, box.epoch, box.last, box.tag, box.from,
      box.from_tag, box.sum, box.from_sum, box.hollow, box.keyed, box.due, box.own_size) .. box.rest)
  end
  if is_due then
    local until_ms = string.format('%d', now + box.ttl + math.floor(box.ttl / 8))
    redis.call('PEXPIREAT', box.box, until_ms)
    if has_list then redis.call('PEXPIREAT', box.mail, until_ms) end
  elseif is_freed then
    redis.call('PERSIST', box.box)
    if has_list then redis.call('PERSIST', box.mail) end
  elseif box.ttl > 0 and box.base == box.from and has_list then
    -- To Redis, a list that was empty is a new key. It expires with its box.
    redis.call('PEXPIREAT', box.mail, string.format('%d', box.due + box.ttl))
  end
end

-- Returns a wake-up in packed form.
local function pack_wake_up(name, growth)
  return struct.pack(WAKE_UP, #name, name, #growth, growth)
end

-- Returns a growth with the new elements, each after its length.
local function append_elements(growth, elements)
  for _, element in ipairs(elements) do growth = growth .. struct.pack(WAKE_UP_ELEMENT, #element, element) end
  return growth
end

-- Adds a wake-up for each registered process of a mailbox: `full` if there is one and room for it, otherwise `short`.
local function wake_waiters(wake_ups, box, short, full, now)
  local at = box.own_size + 1
  while at <= #box.rest do
    local waiter = Waiter.read(box.rest, at)
    at = waiter.next_at
    if waiter.ends > now then
      local list = wake_ups.lists[waiter.process] or {}
      wake_ups.lists[waiter.process] = list
      list[#list + 1] = full and wake_ups.bytes < MAX_WAKE_UPS and full or short
      wake_ups.bytes = wake_ups.bytes + #list[#list]
    end
  end
end

-- Adds the wake-ups of a mailbox that has new messages: for all processes if it has a new epoch, and for registered
-- processes. Small messages are in the wake-up, so that a waiting process need not read them.
local function add_wake_ups(wake_ups, meta, box, elements, body, now)
  local name = extract_name(meta, box.box)
  local growth = Growth.new({epoch = box.epoch, start_index = box.base, start_tag = box.base_tag, end_index = box.last,
    end_tag = box.tag})
  local packed, full = Growth.write(growth), nil
  local short = pack_wake_up(name, packed)
  wake_ups.lists = wake_ups.lists or {}
  if box.is_new then
    wake_ups.lists.all = wake_ups.lists.all or {}
    wake_ups.lists.all[#wake_ups.lists.all + 1] = short
  elseif box.sum - box.base_sum <= MAX_WAKE_UP then
    if type(elements) == 'string' then elements = {elements, body} end
    if #elements == 2 or not box.keys then
      packed = append_elements(packed, elements)
      full = pack_wake_up(name, packed)
    end
  end
  wake_waiters(wake_ups, box, short, full, now)
end

-- Writes the mailboxes that need more than a new state, and publishes the wake-ups.
local function finish_boxes(plan, meta, partitions, body, now)
  local wake_ups = WakeUps.new({bytes = 0})
  for number, box in pairs(plan.boxes) do
    write_box(box, partitions, now)
    if box.last > box.base and (box.is_new or #box.rest > box.own_size) then
      add_wake_ups(wake_ups, meta, box, plan.writes[2 * number - 1], body, now)
    end
  end
  -- An error is ignored, because wake-ups may be lost: the ACL rules of the user may forbid the channel.
  if wake_ups.lists then
    local channel = form_channel(meta)
    for process, list in pairs(wake_ups.lists) do redis.pcall('PUBLISH', channel .. process, table.concat(list)) end
  end
end
