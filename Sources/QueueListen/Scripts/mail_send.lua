-- Sends messages to mailboxes: to all or to none.
-- KEYS[1] meta  [2] sent: hash, answers to the sender's requests; s: up to which they are settled  then box, mail of each
--     recipient
-- ARGV[1] to [10] as in mail_head and mail_limits  [11] the request's number  [12] SETTLED: the answers to all requests up
--     to here have arrived, or empty; or, of a part of a send across partitions: 'n': does nothing but tell the time, 'l':
--     only looks whether it would be accepted, 'b' and ms since 1970: until then it is carried out, whatever the limits
--     [13] ms that answers are kept  [14] fingerprint of what is sent to whom
--     [15] number of messages  [16] what the sender knows of the mailboxes, or empty; for each recipient '<dc8c8': index,
--     epoch and tag of the last message that it has had confirmed, index 0 for nothing  then for each message: tag (8 random bytes), ms that it lives or 0, collapse key or empty, envelope
--     then for each recipient the numbers of its messages, in order, separated by commas, or empty for all; these may be
--     left out when everyone gets all
-- Reply: {'ok', index of the first message of each recipient, separated by spaces, their epochs, 8 bytes each, or nothing
--     if it has been answered before}, {'full', number of the recipient},
--     {'conflict'} (the request's number was used for something else), {'stale'} (answered long ago), or a refusal. Of a
--     part: {'ok', ms since 1970} to 'n' and 'l', {'late'} to 'b'.
local sent, req = KEYS[2], ARGV[11]
local letter = string.byte(ARGV[12])
local is_look, by = letter == 108, letter == 98 and tonumber(string.sub(ARGV[12], 2))
if letter == 110 then return {'ok', format('%.0f', now)} end
local answers = try('HMGET', sent, 's', req)
if answers.err then return {'foreign', sent} end
local settled = tonumber(answers[1] or 0)
if tonumber(req) <= settled then return {'stale'} end
if answers[2] then
  local print, indices = string.match(answers[2], '^(%S+) (.*)$')
  if print ~= ARGV[14] then return {'conflict'} end
  if is_look then return {'ok', format('%.0f', now)} end
  return {'ok', indices, ''}
end
if by and now > by then return {'late'} end

local messages = tonumber(ARGV[15])
local lists = 16 + 4 * messages
local boxes, seen, answer, epochs = {}, {}, {}, {}
for k = 3, #KEYS, 2 do
  local number = (k - 1) / 2
  local box, mail = KEYS[k], KEYS[k + 1]
  if seen[box] then return redis.error_reply('RDC a recipient is named twice') end
  seen[box] = true
  local b, foreign = open(box, mail)
  if not b then return {'foreign', foreign} end
  if ARGV[16] ~= '' then
    -- Redis has lost what it confirmed to this sender: whoever reads is told, by a new epoch.
    local index, epoch, tag = unpacked('<dc8c8', ARGV[16], 24 * number - 23)
    if index > b.from and epoch == b.epoch then
      local found = index == b.last and b.tag
      if index < b.last then
        local _
        _, _, found = unpacked('<c1I6c8', call('LINDEX', mail, index - b.from - 1))
      end
      if found ~= tag then b.epoch, b.is_new = ARGV[2], true end
    end
  end
  local own = limits
  if b.limits then
    own = {}
    for word in string.gmatch(b.limits, '%S+') do own[#own + 1] = word end
  end
  b.ttl = tonumber(own[5])
  local list = ARGV[lists + number]
  local from, last, sum, elements = b.last, b.last, b.sum, {}
  local size, age = 0, tonumber(own[3])
  local at, numbers = 1, nil
  if list and list ~= '' then
    numbers = {}
    for word in string.gmatch(list, '%d+') do numbers[#numbers + 1] = tonumber(word) end
  end
  local n = numbers and #numbers or messages
  for i = 1, n do
    at = 13 + 4 * (numbers and numbers[i] or i)
    local tag, life, key, envelope = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
    if age > 0 and (life == 0 or age < life) then life = age end
    local bytes = 34 + #key + #envelope
    last, sum, size = last + 1, sum + bytes, size + bytes
    elements[i] = pack('<c1I6c8I6I6I6Bc0', 'M', last, tag, now, life > 0 and now + life or 0, sum, #key, key) .. envelope
    b.new_tag = tag
    if key ~= '' then
      b.keys = b.keys or {}
      b.keys[#b.keys + 1] = key
      b.keys[#b.keys + 1] = last
    end
  end
  -- Full: what has expired or is empty goes first, then the oldest or nothing.
  local most, most_bytes = tonumber(own[1]), tonumber(own[2])
  local count, held = b.last - b.from + n, b.sum - b.from_sum - b.hollow + size
  if (count > most or held > most_bytes) and not by then
    local i, left = 0, b.last - b.from
    if own[4] == 'd' and count > most and b.keyed == 0 and b.hollow == 0 then
      -- However many they are, the last of them tells all.
      i = math.min(count - most, left)
      local element = i > 0 and call('LINDEX', mail, i - 1)
      if element then
        local before, _ = b.from_sum, nil
        _, b.from, b.from_tag, _, _, b.from_sum = unpacked('<c1I6c8I6I6I6', element)
        count, held = count - i, held - (b.from_sum - before)
      end
    end
    while count > most or held > most_bytes do
      local element = i < left and i < 4096 and call('LINDEX', mail, i)
      if not element then return {'full', number} end
      local letter, index, tag, _, expires, its_sum, key = unpacked('<c1I6c8I6I6I6Bc0', element)
      if own[4] == 'r' and letter == 'M' and (expires == 0 or expires > now) then return {'full', number} end
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

if is_look then return {'ok', format('%.0f', now)} end

-- The first to be written, because it is what Redis refuses at maxmemory: then nothing has been done.
local indices = table.concat(answer, ' ')
if not partitions then call('HSET', KEYS[1], 'partitions', ARGV[1]) end
call('HSET', sent, req, ARGV[14] .. ' ' .. indices)
if letter and not by then
  local upto = math.min(tonumber(ARGV[12]), settled + 1000)
  if upto > settled then
    local names = {}
    for number = settled + 1, upto do names[#names + 1] = format('%.0f', number) end
    call('HDEL', sent, unpack(names))
    call('HSET', sent, 's', format('%.0f', upto))
  end
end
call('PEXPIRE', sent, ARGV[13])

local news, brought = nil, 0
local channel = string.sub(KEYS[1], 1, -5) .. 'wake:'
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
      if tonumber(call('HGET', b.box, field)) == b.old_keys[i + 1] then b.keyed = b.keyed - call('HDEL', b.box, field) end
    end
  end
  if b.keys then
    for i = 1, #b.keys, 2 do
      local field = 'k:' .. b.keys[i]
      local older = tonumber(call('HGET', b.box, field) or 0) or 0
      -- After tampering it may be this very one, or behind it.
      if older > b.from and older < b.keys[i + 1] then
        local position = older - b.from - 1
        local element = call('LINDEX', b.mail, position)
        local letter, index, tag, sent_at, expires, its_sum, key = unpacked('<c1I6c8I6I6I6Bc0', element)
        -- After tampering it may be another one.
        if letter == 'M' and index == older and key == b.keys[i] then
          local empty = pack('<c1I6c8I6I6I6B', 'X', index, tag, sent_at, expires, its_sum, 0)
          call('LSET', b.mail, position, empty)
          b.hollow = b.hollow + #element - #empty
        end
      end
      b.keyed = b.keyed + call('HSET', b.box, field, format('%.0f', b.keys[i + 1]))
    end
  end
  local is_due, is_freed = b.ttl > 0 and b.due <= now, b.ttl == 0 and b.due > 0
  if is_due then b.due = now + math.floor(b.ttl / 8) elseif is_freed then b.due = 0 end
  call('HSET', b.box, 'm', pack('<c8dc8dc8ddddd', b.epoch, b.last, b.new_tag or b.tag, b.from, b.from_tag, b.sum,
    b.from_sum, b.hollow, b.keyed, b.due))
  if b.is_new then
    -- Whoever waited for its predecessor is not among its waiters.
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
    -- A list that was empty is a new one to Redis. It goes with its box.
    call('PEXPIREAT', b.mail, format('%.0f', b.due + b.ttl))
  end
  if b.is_new or b.waiters ~= '' then
    -- ':box:' is as long as ':meta'.
    local name = string.sub(b.box, #KEYS[1] + 1)
    local growth = pack('<c8I6c8I6c8', b.epoch, b.base, b.tag, b.last, b.new_tag or b.tag)
    local hint, full = pack('<Hc0Hc0', #name, name, #growth, growth), nil
    news = news or {}
    if b.is_new then
      news.all = news.all or {}
      news.all[#news.all + 1] = hint
    elseif b.size <= 1024 and (n == 1 or not b.keys) then
      -- What is small is brought along, so that who waits for it need not ask.
      for _, element in ipairs(elements) do growth = growth .. pack('<Hc0', #element, element) end
      full = pack('<Hc0Hc0', #name, name, #growth, growth)
    end
    local at = 1
    while at <= #b.waiters do
      local process, ends
      process, ends, at = unpacked('<c16d', b.waiters, at)
      if ends > now then
        local its = news[process] or {}
        news[process] = its
        its[#its + 1] = full and brought < 65536 and full or hint
        brought = brought + #its[#its]
      end
    end
  end
end
-- Only hints: whether they are allowed does not change what has been sent.
if news then
  for process, hints in pairs(news) do try('PUBLISH', channel .. process, table.concat(hints)) end
end
return {'ok', indices, table.concat(epochs)}
