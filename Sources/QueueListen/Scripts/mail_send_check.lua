-- Sends messages to mailboxes: to all or to none. This part checks everything and composes what is written. A send is
-- composed of mail_head, mail_send_check, mail_send_store and mail_send_end. Between them, mail_send_room makes room in
-- full mailboxes, and mail_send_collapse replaces messages that have the same collapse key.
-- KEYS[1] meta
--     [2] sent: hash, the answers to the sender's requests (ANSWER) by their places
--     then box, mail of each recipient
-- ARGV[1] HEADER, then the tag of each message (8 random bytes), then for each recipient KNOWN, or nothing
--     then the messages, each as BODY
--     then for each recipient the numbers of its messages, in order, separated by commas, or empty for all; these may
--         be omitted when everyone gets all
-- Reply: for each recipient RESULT. {'ok', that}: the same for a request that was answered before. {'full', number of
--     the recipient}: its mailbox is full; final only with mail_send_room. {'again'}: some of the room was made, send
--     again. {'damaged', number of the recipient}: run mail_repair for its mailbox, and send again. {'conflict'}: the
--     request's number was used for another send. {'stale'}: answered long ago. {'late'}: the deadline has passed. Or a
--     refusal. To PROBE: {'ok', ms since 1970}.

-- HEADER:
--   mode         SEND; PROBE: checks whether a part of a cross-partition send would be accepted; PART: delivers the part
--                until the deadline, regardless of limits
--   partitions   of the namespace
--   has_keys     1 if any message has a collapse key
--   messages     number of messages
--   place        of the request, 2 bytes: its answer replaces that of the earlier request in this place, which must
--                have arrived
--   request      number of the request, which grows
--   answer_ttl   ms that the answer is kept; half of it if the sender has sent before
--   fingerprint  of messages and recipients, 8 bytes
--   deadline     ms since 1970, for PART
--   and LIMITS up to the time to live
local HEADER, SEND, PROBE, PART = '<BHBHc2ddc8dddBdd', 0, 1, 2
-- The sender's knowledge of a mailbox: epoch, index and tag of the last message that was confirmed to it, index 0 for
-- none.
local KNOWN, KNOWN_SIZE = '<c8dc8', 24
-- number of the request, ms when the expiry was last set, fingerprint, RESULT of each recipient
local ANSWER = '<ddc8'
-- index of the first message, epoch of the mailbox
local RESULT = '<dc8'
local MAX_MESSAGES = 768

local meta, sent, arguments = KEYS[1], KEYS[2], ARGV[1]
local mode, partitions, has_keys, messages, place, request, answer_ttl, fingerprint, deadline, max_messages, max_bytes,
  when_full, max_age, ttl, tags_at = unpacked(HEADER, arguments)
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000

local earlier, expiry_set = try('HGET', sent, place), 0
if earlier then
  if earlier.err then return {'foreign', sent} end
  local number, when, print, at = unpacked(ANSWER, earlier)
  if request < number then return {'stale'} end
  if request == number then
    if print ~= fingerprint then return {'conflict'} end
    return {'ok', mode == PROBE and format('%d', now) or sub(earlier, at)}
  end
  expiry_set = when
end
if mode == PART and now > deadline then return {'late'} end
if messages > MAX_MESSAGES then return redis.error_reply('RDC too many messages') end

-- The writes: for each recipient its elements (the only head, or a table of all) and the new state of its mailbox.
-- Mailboxes that need more are in `boxes`, by the number of the recipient.
local plan, boxes = {0, 0}, nil
-- RESULT of the first recipient; of all, if there are several.
local reply, results = nil, nil
local known_at = tags_at + 8 * messages
local keys, last_recipient, seen = KEYS, (#KEYS - 2) / 2, nil
-- is_partition_new: meta must be written. is_step: the script only makes room.
local is_partition_new, is_step = false, false
for number = 1, last_recipient do
  local box, mail = keys[2 * number + 1], keys[2 * number + 2]
  if last_recipient > 1 then
    seen = seen or {}
    if seen[box] then return redis.error_reply('RDC a recipient is named twice') end
    seen[box] = true
  end
  local state, count = try('HGET', box, 'm'), try('LLEN', mail)
  local its_partitions, epoch, last, tag, from, from_tag, sum, from_sum, hollow, keyed, due, own_size, rest_at
  local is_new = not state
  if state then
    if state.err then return {'foreign', box} end
    its_partitions, epoch, last, tag, from, from_tag, sum, from_sum, hollow, keyed, due, own_size, rest_at =
      unpacked(STATE, state)
    if its_partitions ~= partitions then return {'partitions', format('%d', its_partitions)} end
  else
    its_partitions = try('HGET', meta, 'partitions')
    if not its_partitions then
      is_partition_new = true
    elseif type(its_partitions) == 'table' then
      return {'foreign', meta}
    elseif its_partitions ~= partitions .. LAYOUT then
      return {'partitions', its_partitions}
    end
    -- A message's tag is random, so it can be the epoch as well.
    epoch, last, tag, from, from_tag, sum, from_sum = sub(arguments, tags_at, tags_at + 7), 0, NO_TAG, 0, NO_TAG, 0, 0
    hollow, keyed, due, own_size, state, rest_at = 0, 0, 0, 0, '', 1
  end
  if count ~= 2 * (last - from) then
    if type(count) == 'table' then return {'foreign', mail} end
    return {'damaged', number}
  end
  if known_at <= #arguments and unpacked('c8', arguments, known_at + KNOWN_SIZE * number - 8) ~= tag then
    -- The last message is not the one that was confirmed to this sender. If Redis has lost that one, mail_repair notifies
    -- the readers.
    local known_epoch, index, known_tag = unpacked(KNOWN, arguments, known_at + KNOWN_SIZE * (number - 1))
    if index > 0 and known_epoch == epoch then
      if index >= last then return {'damaged', number} end
      local kind, its_index, its_sum, its_sent, its_tag
      if index > from then
        kind, its_index, its_sum, its_sent, its_tag =
          unpacked(HEAD, call('LINDEX', mail, format('%d', 2 * (index - from - 1))))
      elseif index == from then
        its_tag = from_tag
      else
        local history = call('HGET', box, 'h') or ''
        local at = #history - 8 * (from - index) - 7
        its_tag = at > 0 and sub(history, -8) == from_tag and sub(history, at, at + 7)
      end
      if its_tag and its_tag ~= known_tag then return {'damaged', number} end
    end
  end

  local own_max_messages, own_max_bytes, own_when_full, own_max_age, own_ttl =
    max_messages, max_bytes, when_full, max_age, ttl
  if own_size > 0 then
    own_max_messages, own_max_bytes, own_when_full, own_max_age, own_ttl = unpacked(LIMITS, state, rest_at)
  end
  local result = pack(RESULT, last + 1, epoch)
  if number == 1 then
    reply = result
  else
    results = results or {reply}
    results[number] = result
  end
  local base, base_tag, base_sum, elements = last, tag, sum, nil
  if messages == 1 and own_max_age == 0 then
    tag = unpacked('c8', arguments, tags_at)
    last, sum = last + 1, sum + HEAD_SIZE + #ARGV[2]
    elements = pack(HEAD, MESSAGE, last, sum, now, tag)
  else
    local list, numbers = ARGV[1 + messages + number], nil
    if list and list ~= '' then
      numbers = {}
      for word in string.gmatch(list, '%d+') do numbers[#numbers + 1] = tonumber(word) end
    end
    elements = {}
    for i = 1, numbers and #numbers or messages do
      local position = numbers and numbers[i] or i
      local body = ARGV[1 + position]
      if own_max_age > 0 then
        local life = unpacked('<I6', body)
        if life == 0 or own_max_age < life then body = pack('<I6', own_max_age) .. sub(body, 7) end
      end
      tag = unpacked('c8', arguments, tags_at + 8 * (position - 1))
      last, sum = last + 1, sum + HEAD_SIZE + #body
      elements[2 * i - 1] = pack(HEAD, MESSAGE, last, sum, now, tag)
      elements[2 * i] = body
    end
  end
  plan[2 * number - 1] = elements

  local is_over = mode ~= PART and (last - from > own_max_messages or sum - from_sum - hollow > own_max_bytes)
  if base == from or is_over or rest_at <= #state or has_keys == 1 or (own_ttl > 0 and due <= now)
    or (own_ttl == 0 and due > 0) then
    boxes = boxes or {}
    boxes[number] = {number = number, box = box, mail = mail, epoch = epoch, last = last, tag = tag, from = from,
      from_tag = from_tag, sum = sum, from_sum = from_sum, hollow = hollow, keyed = keyed, due = due,
      own_size = own_size, rest = sub(state, rest_at), is_new = is_new, is_over = is_over, base = base,
      base_tag = base_tag, base_sum = base_sum, drop = 0, max_messages = own_max_messages,
      max_bytes = own_max_bytes, when_full = own_when_full, ttl = own_ttl}
    plan[2 * number] = false
  else
    plan[2 * number] =
      pack(STATE, partitions, epoch, last, tag, from, from_tag, sum, from_sum, hollow, keyed, due, 0)
  end
end
