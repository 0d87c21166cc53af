-- Sends messages to mailboxes: to all or to none. A send checks everything, makes room in full mailboxes, stores the
-- messages, replaces messages that have the same collapse key, and notifies waiting processes.

-- The maximum number of messages in one send.
local MAX_MESSAGES = 768

-- The writes and the reply of a send.
local Plan = record {
  also = {
    'writes',            -- for each recipient its elements (the only head, or a table of all), then the new state of
                         -- its mailbox, or false if the mailbox is in `boxes`. A table that is created when needed
    'boxes',             -- mailboxes that need more than a new state, by the number of the recipient, or nil
    'reply',             -- Result of the first recipient
    'results',           -- of all, if there are several, or nil
    'is_unchecked',      -- the length of the list has yet to be compared: the usual send does it when it appends
    'is_partition_new',  -- meta must be written
    'is_step',           -- the script only makes room, and the send must be repeated
  },
}

-- Returns the time in ms, with a fraction.
local function read_exact_time()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end

-- Replies to a request that was answered before. Refuses an older one, and one whose sender knows of an earlier request
-- that Redis has lost. Returns when the expiry of the answers was set last.
local function check_request(sent, request, now)
  local earlier, answered, expiry_set = redis.pcall('HGET', sent, request.place), 0, 0
  if earlier then
    if earlier.err then refuse({'foreign', sent}) end
    local answer = AnswerTimes.read(earlier)
    if request.number < answer.number then refuse({'stale'}) end
    if request.number == answer.number then
      local repeated = Answer.read(earlier)
      if repeated.fingerprint ~= request.fingerprint then refuse({'conflict'}) end
      refuse({'ok', request.mode == PROBE and string.format('%d', now) or string.sub(earlier, repeated.results_at)})
    end
    answered, expiry_set = answer.number, answer.expiry_set
  end
  if request.mode == PART then
    if now > request.condition then refuse({'late'}) end
  elseif request.condition > answered then
    refuse({'behind'})
  end
  if request.messages > MAX_MESSAGES then refuse(redis.error_reply('RDC too many messages')) end
  return expiry_set
end

-- Refuses a mailbox that may have lost the last message that was confirmed to this sender: {'damaged', number}. The
-- sender then sends again what Redis has lost, or runs repair, which notifies the readers.
local function check_confirmed_message(box, mail, state, known, number)
  if known.index >= state.last or known.epoch ~= state.epoch then refuse({'damaged', number}) end
  local tag = find_tag(box, mail, state, known.index)
  if tag and tag ~= known.tag then refuse({'damaged', number}) end
end

-- Returns the numbers of a list that are separated by commas.
local function parse_numbers(list)
  local numbers = {}
  for word in string.gmatch(list, '%d+') do numbers[#numbers + 1] = tonumber(word) end
  return numbers
end

-- Returns the elements of several messages, or of one whose life the mailbox limits, and advances the state. `list` has
-- the numbers of the messages, or is nil or empty for all.
local function compose_messages(state, request, arguments, list, max_age, now)
  local numbers, elements = nil, {}
  if list and list ~= '' then
    numbers = parse_numbers(list)
  end
  for i = 1, numbers and #numbers or request.messages do
    local position = numbers and numbers[i] or i
    local body = arguments[1 + position]
    if max_age > 0 then
      local life = struct.unpack(BODY_LIFE, body)
      if life == 0 or max_age < life then body = struct.pack(BODY_LIFE, max_age) .. string.sub(body, 7) end
    end
    state.tag = struct.unpack('c8', request.text, request.more_tags_at + 8 * (position - 2))
    state.last, state.sum = state.last + 1, state.sum + Head.size + #body
    elements[2 * i - 1] = struct.pack(Head.format, MESSAGE, state.last, state.sum, now, state.tag)
    elements[2 * i] = body
  end
  return elements
end

-- Returns the elements of the messages for a mailbox, and advances its state. Of a single message whose second element
-- is as the client passes it, returns the first element only.
local function compose_elements(state, request, arguments, number, max_age, now)
  if request.messages == 1 and max_age == 0 then
    state.tag = request.first_tag
    state.last, state.sum = state.last + 1, state.sum + Head.size + #arguments[2]
    return struct.pack(Head.format, MESSAGE, state.last, state.sum, now, state.tag)
  end
  return compose_messages(state, request, arguments, arguments[1 + request.messages + number], max_age, now)
end

-- Refuses a mailbox whose list does not have the elements of this number of messages.
local function check_length(mail, messages, number)
  local count = redis.pcall('LLEN', mail)
  if count ~= 2 * messages then
    if type(count) == 'table' then refuse({'foreign', mail}) end
    refuse({'damaged', number})
  end
end

-- Reads the state of a recipient's mailbox and checks it. Returns the state as text, which is empty if the mailbox does
-- not exist.
local function read_recipient(plan, state, meta, box, mail, request, number)
  local text = redis.pcall('HGET', box, 'm')
  if text then
    read_state(state, text, box, request.partitions)
  else
    -- A message's tag is random, so it can be the epoch as well.
    create_state(state, meta, request.partitions, request.first_tag)
    text, state.rest_at = '', 1
  end
  if not plan.is_unchecked then check_length(mail, state.last - state.from, number) end
  local known_at = request.more_tags_at + 8 * (request.messages - 1)
  if known_at <= #request.text
    and struct.unpack('c8', request.text, known_at + Known.size * number - 8) ~= state.tag then
    -- The last message is another one than was confirmed to this sender.
    if plan.is_unchecked then
      check_length(mail, state.last - state.from, number)
      plan.is_unchecked = false
    end
    local known = Known.read(request.text, known_at + Known.size * (number - 1))
    if known.index > 0 then
      check_confirmed_message(box, mail, state, known, number)
    elseif text == '' and known.epoch ~= NO_TAG then
      -- Redis has lost the mailbox, and what was sent to it is sent again.
      state.epoch = known.epoch
    end
  end
  return text
end

-- Adds the Result of a recipient to the reply.
local function add_result(plan, number, index, epoch)
  local result = struct.pack(Result.format, index, epoch)
  if number == 1 then
    plan.reply = result
  else
    plan.results = plan.results or {plan.reply}
    plan.results[number] = result
  end
end

-- Returns the limits of a recipient: the mailbox's own if it has any, otherwise those of the request.
local function read_limits(request, state, text)
  local limits = Limits.new({max_messages = request.max_messages, max_bytes = request.max_bytes,
    when_full = request.when_full, max_age = request.max_age, ttl = request.ttl})
  if state.own_size > 0 then Limits.read_into(limits, text, state.rest_at) end
  return limits
end

-- Adds what is written to a mailbox: the elements of the messages, and the new state or false.
local function add_writes(plan, number, elements, state)
  plan.writes = plan.writes or {0, 0}
  plan.writes[2 * number - 1], plan.writes[2 * number] = elements, state
end

-- Checks a recipient and composes what is written to its mailbox. Ends the usual send: `is_alone` is true for one
-- message to one recipient, whose life only a limit of the mailbox's own could shorten.
local function plan_recipient(plan, meta, sent, box, mail, request, arguments, number, is_alone, expiry_set, now)
  local state = State.new()
  local text = read_recipient(plan, state, meta, box, mail, request, number)
  if state.is_partition_new then plan.is_partition_new = true end
  local limits = read_limits(request, state, text)
  add_result(plan, number, state.last + 1, state.epoch)
  local base, base_tag, base_sum = state.last, state.tag, state.sum
  local elements = compose_elements(state, request, arguments, number, limits.max_age, now)
  local is_over = request.mode ~= PART and (state.last - state.from > limits.max_messages
    or state.sum - state.from_sum - state.hollow > limits.max_bytes)
  if base == state.from or is_over or state.rest_at <= #text or request.has_keys == 1
    or (limits.ttl > 0 and state.due <= now) or (limits.ttl == 0 and state.due > 0) then
    if plan.is_unchecked then check_length(mail, base - state.from, number) end
    plan.boxes = plan.boxes or {}
    plan.boxes[number] = {number = number, box = box, mail = mail, epoch = state.epoch, last = state.last,
      tag = state.tag, from = state.from, from_tag = state.from_tag, sum = state.sum, from_sum = state.from_sum,
      hollow = state.hollow, keyed = state.keyed, due = state.due, own_size = state.own_size,
      rest = string.sub(text, state.rest_at), is_new = state.is_new, is_over = is_over, base = base,
      base_tag = base_tag, base_sum = base_sum, drop = 0, max_messages = limits.max_messages,
      max_bytes = limits.max_bytes, when_full = limits.when_full, ttl = limits.ttl}
    add_writes(plan, number, elements, false)
  elseif is_alone then
    store_alone(sent, box, mail, request, expiry_set, plan.reply, elements, arguments[2], state, now)
  else
    add_writes(plan, number, elements, State.write(state))
  end
end

-- Sends messages to mailboxes: to all or to none.
-- KEYS   [1] meta  [2] sent: hash, the answers to the sender's requests (Answer) by their places. Then box, mail of
--        each recipient
-- ARGV   [1] SendRequest, then the tag of each other message (8 random bytes), then for each recipient Known, or
--        nothing. Then the messages, each as Body and its envelope. Then for each recipient the numbers of its
--        messages, in order, separated by commas, or empty for all; these may be omitted when everyone gets all
-- Reply  for each recipient Result. {'ok', that}: the same for a request that was answered before. To PROBE: {'ok', ms
--        since 1970}
-- Refuses {'full', number of the recipient}: its mailbox is full. {'again'}: some of the room was made, send again.
--        {'damaged', number of the recipient}: send again what Redis has lost, or run repair for its mailbox, and send
--        this again. {'behind'}: Redis has lost an earlier request in this place, send that again first. {'conflict'}:
--        the request's number was used for another send. {'stale'}: answered long ago. {'late'}: the deadline has
--        passed. And as described at LAYOUT
function entry.send(keys, arguments)
  local meta, sent, recipients, seen = keys[1], keys[2], (#keys - 2) / 2, nil
  local request = SendRequest.read(arguments[1])
  request.text = arguments[1]
  local now = read_exact_time()
  local expiry_set = check_request(sent, request, now)
  local is_alone = recipients == 1 and request.messages == 1 and request.max_age == 0 and request.mode ~= PROBE
  local plan = Plan.new({is_unchecked = is_alone, is_partition_new = false, is_step = false})
  for number = 1, recipients do
    local box, mail = keys[2 * number + 1], keys[2 * number + 2]
    if recipients > 1 then
      seen = seen or {}
      if seen[box] then return redis.error_reply('RDC a recipient is named twice') end
      seen[box] = true
    end
    plan_recipient(plan, meta, sent, box, mail, request, arguments, number, is_alone, expiry_set, now)
  end
  if plan.boxes then
    make_room(plan, recipients, request.mode, now)
    refuse_full(plan.boxes)
  end
  if request.mode == PROBE then return {'ok', string.format('%d', now)} end
  if plan.results then plan.reply = table.concat(plan.results) end
  if not plan.is_step then
    store_answer(sent, request, expiry_set, plan.reply, now)
    if plan.is_partition_new then write_layout(meta, request.partitions) end
    store_messages(plan.writes, keys, arguments[2], recipients)
  end
  if plan.boxes then
    collapse_messages(plan, request.has_keys, arguments[2])
    finish_boxes(plan, meta, request.partitions, arguments[2], now)
  end
  if plan.is_step then return {'again'} end
  return plan.reply
end
