-- Sends messages to mailboxes: to all or to none.
-- KEYS[1] meta
--     [2] sent: hash, the answers to the sender's requests by their numbers; s: the number up to which they are deleted
--     then box, mail of each recipient
-- ARGV[1] to [10] as in mail_head and mail_limits
--     [11] the request's number
--     [12] mode: empty, or a number: the answers to all requests up to it have arrived; or, for cross-partition sends:
--         'n': returns the time and does nothing else, 'l': checks whether the part would be accepted, 'b' and ms since
--         1970: delivers the part until then, regardless of limits
--     [13] ms that answers are kept
--     [14] fingerprint of messages and recipients
--     [15] number of messages
--     [16] what the sender knows of the mailboxes, or empty; for each recipient KNOWN: index, epoch and tag of the last
--         message that was confirmed to the sender, index 0 for none
--     then for each message: tag (8 random bytes), ms that it lives or 0, collapse key or empty, envelope
--     then for each recipient the numbers of its messages, in order, separated by commas, or empty for all; these may
--         be omitted when everyone gets all
-- Reply: {'ok', index of the first message of each recipient, separated by spaces, their epochs, 8 bytes each, or
--     empty if this repeats an earlier answer}, {'full', number of the recipient}, {'conflict'} (the request's number was
--     used for another send), {'stale'} (answered long ago), or a refusal. For a part: {'ok', ms since 1970} to 'n' and 'l',
--     {'late'} to 'b'.

-- The modes, by the first byte of the argument.
local TIME, PROBE, PART = 110, 108, 98
local KNOWN, KNOWN_SIZE = '<dc8c8', 24
-- The positions of the arguments: of the first message, and of the parts of a message.
local FIRST_MESSAGE, MESSAGE_SIZE, LIFE, KEY, ENVELOPE = 17, 4, 1, 2, 3
-- A hint contains messages of up to MAX_HINT bytes, and all hints of a send together up to MAX_HINTS.
local MAX_HINT, MAX_HINTS = 1024, 65536
local meta, sent = KEYS[1], KEYS[2]
local req, mode, answer_ttl, fingerprint = ARGV[11], ARGV[12], ARGV[13], ARGV[14]
local messages, known = tonumber(ARGV[15]), ARGV[16]
local letter = string.byte(mode)
local is_probe, by = letter == PROBE, letter == PART and tonumber(string.sub(mode, 2))
if letter == TIME then return {'ok', format('%.0f', now)} end
local answers = try('HMGET', sent, 's', req)
if answers.err then return {'foreign', sent} end
local settled, earlier = tonumber(answers[1] or 0), answers[2]
if tonumber(req) <= settled then return {'stale'} end
if earlier then
  local print, indices = string.match(earlier, '^(%S+) (.*)$')
  if print ~= fingerprint then return {'conflict'} end
  if is_probe then return {'ok', format('%.0f', now)} end
  return {'ok', indices, ''}
end
if by and now > by then return {'late'} end

local lists = FIRST_MESSAGE - 1 + MESSAGE_SIZE * messages
local boxes, seen, answer, epochs = {}, {}, {}, {}
for k = 3, #KEYS, 2 do
  local number = (k - 1) / 2
  local box, mail = KEYS[k], KEYS[k + 1]
  if seen[box] then return redis.error_reply('RDC a recipient is named twice') end
  seen[box] = true
  local b, foreign = open(box, mail)
  if not b then return {'foreign', foreign} end
  if known ~= '' then
    -- If Redis has lost what it confirmed to this sender, a new epoch notifies the readers.
    local index, epoch, tag = unpacked(KNOWN, known, KNOWN_SIZE * (number - 1) + 1)
    if index > b.from and epoch == b.epoch then
      local found = index == b.last and b.tag
      if index < b.last then
        local kind, found_index
        kind, found_index, found = unpacked(ELEMENT_TO_TAG, call('LINDEX', mail, index - b.from - 1))
      end
      if found ~= tag then b.epoch, b.is_new = ARGV[2], true end
    end
  end
  local own = limits
  if b.limits then
    own = {}
    for word in string.gmatch(b.limits, '%S+') do own[#own + 1] = word end
  end
  b.ttl = tonumber(own[TTL])
  local list = ARGV[lists + number]
  local from, last, sum, elements = b.last, b.last, b.sum, {}
  local size, age = 0, tonumber(own[MAX_AGE])
  local at, numbers = 1, nil
  if list and list ~= '' then
    numbers = {}
    for word in string.gmatch(list, '%d+') do numbers[#numbers + 1] = tonumber(word) end
  end
  local n = numbers and #numbers or messages
  for i = 1, n do
    at = FIRST_MESSAGE + MESSAGE_SIZE * ((numbers and numbers[i] or i) - 1)
    local tag, life, key, envelope = ARGV[at], tonumber(ARGV[at + LIFE]), ARGV[at + KEY], ARGV[at + ENVELOPE]
    if age > 0 and (life == 0 or age < life) then life = age end
    local bytes = ELEMENT_SIZE + #key + #envelope
    last, sum, size = last + 1, sum + bytes, size + bytes
    local expires = life > 0 and now + life or 0
    elements[i] = pack(ELEMENT, MESSAGE, last, tag, now, expires, sum, #key, key) .. envelope
    b.new_tag = tag
    if key ~= '' then
      b.keys = b.keys or {}
      b.keys[#b.keys + 1] = key
      b.keys[#b.keys + 1] = last
    end
  end
  -- If it is full: expired and empty elements are deleted first, then the oldest or none.
  local max_messages, max_bytes = tonumber(own[MAX_MESSAGES]), tonumber(own[MAX_BYTES])
  local count, held = b.last - b.from + n, b.sum - b.from_sum - b.hollow + size
  if (count > max_messages or held > max_bytes) and not by then
    local i, left = 0, b.last - b.from
    if own[WHEN_FULL] == DROP_OLDEST and count > max_messages and b.keyed == 0 and b.hollow == 0 then
      -- Without replaced messages and collapse keys, the last element to be deleted has all that is needed.
      i = math.min(count - max_messages, left)
      local element = i > 0 and call('LINDEX', mail, i - 1)
      if element then
        local before = b.from_sum
        local kind, index, tag, sent_at, expires, its_sum = unpacked(ELEMENT_TO_SUM, element)
        b.from, b.from_tag, b.from_sum = index, tag, its_sum
        count, held = count - i, held - (b.from_sum - before)
      end
    end
    while count > max_messages or held > max_bytes do
      local element = i < left and i < 4096 and call('LINDEX', mail, i)
      if not element then return {'full', number} end
      local kind, index, tag, sent_at, expires, its_sum, key = unpacked(ELEMENT, element)
      local is_needed = kind == MESSAGE and (expires == 0 or expires > now)
      if is_needed and own[WHEN_FULL] == REJECT then return {'full', number} end
      b.hollow = b.hollow - (its_sum - b.from_sum - #element)
      b.from, b.from_tag, b.from_sum = index, tag, its_sum
      if key ~= '' and b.keyed > 0 then
        b.old_keys = b.old_keys or {}
        b.old_keys[#b.old_keys + 1] = key
        b.old_keys[#b.old_keys + 1] = index
      end
      count, held, i = count - 1, held - #element, i + 1
    end
    b.drop = i
  end
  answer[number], epochs[number] = format('%.0f', b.last + 1), b.epoch
  b.base, b.last, b.sum, b.size, b.elements = b.last, last, sum, size, elements
  boxes[number] = b
end

if is_probe then return {'ok', format('%.0f', now)} end

-- The first write is one that Redis refuses at maxmemory: then nothing has been done.
local indices = table.concat(answer, ' ')
if not partitions then call('HSET', meta, 'partitions', ARGV[1]) end
call('HSET', sent, req, fingerprint .. ' ' .. indices)
if letter and not by then
  local upto = math.min(tonumber(mode), settled + 1000)
  if upto > settled then
    local names = {}
    for number = settled + 1, upto do names[#names + 1] = format('%.0f', number) end
    call('HDEL', sent, unpack(names))
    call('HSET', sent, 's', format('%.0f', upto))
  end
end
call('PEXPIRE', sent, answer_ttl)

-- The hints for each process, and their size.
local hints_of, hint_bytes = nil, 0
local channel = string.sub(meta, 1, -5) .. 'wake:'
for number, b in ipairs(boxes) do
  if b.drop then call('LTRIM', b.mail, b.drop, -1) end
  local elements = b.elements
  local n = #elements
  if n <= 1000 then
    if n > 0 then call('RPUSH', b.mail, unpack(elements)) end
  else
    for i = 1, n, 1000 do call('RPUSH', b.mail, unpack(elements, i, math.min(n, i + 999))) end
  end
  if b.old_keys then
    for i = 1, #b.old_keys, 2 do
      local field = 'k:' .. b.old_keys[i]
      if tonumber(call('HGET', b.box, field)) == b.old_keys[i + 1] then
        b.keyed = b.keyed - call('HDEL', b.box, field)
      end
    end
  end
  if b.keys then
    for i = 1, #b.keys, 2 do
      local field = 'k:' .. b.keys[i]
      local older = tonumber(call('HGET', b.box, field) or 0) or 0
      -- After tampering it may be this message, or one after it.
      if older > b.from and older < b.keys[i + 1] then
        local position = older - b.from - 1
        local element = call('LINDEX', b.mail, position)
        local kind, index, tag, sent_at, expires, its_sum, key = unpacked(ELEMENT, element)
        -- After tampering it may be another message.
        if kind == MESSAGE and index == older and key == b.keys[i] then
          local empty = pack(ELEMENT, EMPTY, index, tag, sent_at, expires, its_sum, 0, '')
          call('LSET', b.mail, position, empty)
          b.hollow = b.hollow + #element - #empty
        end
      end
      b.keyed = b.keyed + call('HSET', b.box, field, format('%.0f', b.keys[i + 1]))
    end
  end
  local is_due, is_freed = b.ttl > 0 and b.due <= now, b.ttl == 0 and b.due > 0
  if is_due then b.due = now + math.floor(b.ttl / 8) elseif is_freed then b.due = 0 end
  call('HSET', b.box, 'm', pack(STATE, b.epoch, b.last, b.new_tag or b.tag, b.from, b.from_tag, b.sum,
    b.from_sum, b.hollow, b.keyed, b.due))
  if b.is_new then
    -- The devices belong to its predecessor.
    call('HDEL', b.box, 'd')
  end
  if is_due then
    local at = format('%.0f', now + b.ttl + math.floor(b.ttl / 8))
    call('PEXPIREAT', b.box, at)
    call('PEXPIREAT', b.mail, at)
  elseif is_freed then
    call('PERSIST', b.box)
    call('PERSIST', b.mail)
  elseif b.ttl > 0 and b.base == b.from then
    -- To Redis, a list that was empty is a new key. It expires with its box.
    call('PEXPIREAT', b.mail, format('%.0f', b.due + b.ttl))
  end
  if b.is_new or b.waiters ~= '' then
    -- ':box:' is as long as ':meta'.
    local name = string.sub(b.box, #meta + 1)
    local growth = pack(GROWTH, b.epoch, b.base, b.tag, b.last, b.new_tag or b.tag)
    local hint, full = pack(HINT, #name, name, #growth, growth), nil
    hints_of = hints_of or {}
    if b.is_new then
      hints_of.all = hints_of.all or {}
      hints_of.all[#hints_of.all + 1] = hint
    elseif b.size <= MAX_HINT and (n == 1 or not b.keys) then
      -- Small messages are in the hint: a process that waits for them need not read.
      for _, element in ipairs(elements) do growth = growth .. pack('<Hc0', #element, element) end
      full = pack(HINT, #name, name, #growth, growth)
    end
    local at = 1
    while at <= #b.waiters do
      local process, ends
      process, ends, at = unpacked(WAITER, b.waiters, at)
      if ends > now then
        local hints = hints_of[process] or {}
        hints_of[process] = hints
        hints[#hints + 1] = full and hint_bytes < MAX_HINTS and full or hint
        hint_bytes = hint_bytes + #hints[#hints]
      end
    end
  end
end
-- Only hints: a user whose ACL rules forbid the channel has sent its messages all the same.
if hints_of then
  for process, hints in pairs(hints_of) do try('PUBLISH', channel .. process, table.concat(hints)) end
end
return {'ok', indices, table.concat(epochs)}
