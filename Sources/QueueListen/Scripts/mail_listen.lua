-- Acknowledges messages, deletes those that all devices have acknowledged, and reads on. If there is nothing to read,
-- it registers the process to be notified.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] to [10] as in mail_head and mail_limits
--     [11] device
--     [12] process, 16 characters
--     [13] the poll's number, which grows with each poll of the process
--     [14] BEGINS: the poll begins, or may have begun; CONTINUES: it reads again; ACKNOWLEDGES: there is no poll, only
--         an acknowledgement
--     [15] ms for which the process is registered, 0: not at all
--     [16] the cursor's index, or empty: the position that this device has acknowledged
--     [17] the cursor's epoch, 8 bytes
--     [18] the cursor's tag, 8 bytes
--     [19] maximum number of messages
--     [20] maximum number of bytes, but always one message
-- Reply: {status, epoch, index, tag, now, messages…}: the position before the first message, ms by the server's clock,
--     and the messages as they are in the list. Statuses: ok; superseded: a newer poll of this device has begun; and,
--     about the cursor: reset (another epoch), forked (the mailbox does not have what the cursor has seen), truncated
--     (messages after it are gone). With these three, the position is where reading can restart. {'devices'}: there are
--     too many devices. Or a refusal.

local BEGINS, CONTINUES, ACKNOWLEDGES = '1', '0', '2'
local MAX_DEVICES, MAX_POLLS, HEADER_SIZE = 64, 4, 5
local device, process, poll_number, phase, registration = ARGV[11], ARGV[12], ARGV[13], ARGV[14], ARGV[15]
local cursor_index, cursor_epoch, cursor_tag = tonumber(ARGV[16]), ARGV[17], ARGV[18]
local max_messages, max_bytes = tonumber(ARGV[19]), tonumber(ARGV[20])
local meta, box, mail = KEYS[1], KEYS[2], KEYS[3]

local b, foreign = open(box, mail)
if not b then return {'foreign', foreign} end
if b.limits then
  limits = {}
  for word in string.gmatch(b.limits, '%S+') do limits[#limits + 1] = word end
end
local poll = process .. ':' .. poll_number
local device_ttl = tonumber(limits[DEVICE_TTL])

-- The devices, without those that have not been seen for too long.
local mine, others, least = nil, {}, nil
local number = 0
do
  local at = 1
  while at <= #b.devices do
    local start = at
    local name, index, tag, seen, polls
    name, index, tag, seen, polls, at = unpacked(DEVICE, b.devices, at)
    if name == device then
      mine = {index = index, tag = tag, polls = polls}
    elseif device_ttl == 0 or seen + device_ttl > now then
      others[#others + 1] = string.sub(b.devices, start, at - 1)
      number = number + 1
      if not least or index < least then least = index end
    end
  end
end
-- A poll that has begun before and is not the current one has been superseded, also when its first reply was lost.
local begins, holder, has_begun = phase == BEGINS, nil, false
if mine then
  holder = string.match(mine.polls, '^%S+')
  local start, colon = string.find(' ' .. mine.polls, ' ' .. process .. ':', 1, true)
  if start then has_begun = tonumber(string.match(mine.polls, '^%d+', colon)) >= tonumber(poll_number) end
end
if mine and holder ~= poll and (phase == CONTINUES or begins and has_begun) then
  return {'superseded', b.epoch, b.from, b.from_tag, format('%.0f', now)}
end
if not mine and number >= MAX_DEVICES then return {'devices'} end

-- Check the cursor.
local index, tag, status = cursor_index, cursor_tag, 'ok'
if not index then
  if mine then
    index, tag = mine.index, mine.tag
    if index < b.from then index, tag = b.from, b.from_tag end
  else
    index, tag = b.from, b.from_tag
  end
elseif cursor_epoch ~= b.epoch then
  status = 'reset'
end
if status == 'ok' then
  if index > b.last then
    status = 'forked'
  elseif index < b.from then
    status = 'truncated'
  else
    local kind, found_index, found
    if index == b.last then
      found = b.tag
    elseif index == b.from then
      found = b.from_tag
    else
      kind, found_index, found = unpacked(ELEMENT_TO_TAG, call('LINDEX', mail, index - b.from - 1))
    end
    if found ~= tag then status = 'forked' end
  end
end
local is_mine_new, has_moved = not mine, false
mine = mine or {index = b.from, tag = b.from_tag, polls = ''}
if status == 'ok' then
  -- Monotonic: an older cursor reads again what is still there, and revokes no acknowledgement.
  if index > mine.index then mine.index, mine.tag, has_moved = index, tag, true end
else
  index, tag = b.from, b.from_tag
  mine.index, mine.tag = index, tag
end

-- Delete what every device has acknowledged, except the backlog for devices that come later.
local cut = mine.index
if least and least < cut then cut = least end
cut = math.min(cut, b.last - tonumber(limits[BACKLOG_COUNT]))
local backlog_age = tonumber(limits[BACKLOG_AGE])
if backlog_age > 0 and cut > b.from then
  -- The first message that is young enough to be kept.
  local low, high = 0, cut - b.from
  while low < high do
    local middle = math.floor((low + high) / 2)
    local kind, middle_index, middle_tag, sent = unpacked(ELEMENT_TO_SENT, call('LINDEX', mail, middle))
    if sent < now - backlog_age then low = middle + 1 else high = middle end
  end
  cut = b.from + low
end
local drop, dead_keys = 0, nil
if cut > b.from then
  drop = cut - b.from
  if b.keyed > 0 or b.hollow > 0 then
    local before = b.from_sum
    for first = 0, drop - 1, 256 do
      for _, element in ipairs(call('LRANGE', mail, first, math.min(drop - 1, first + 255))) do
        local kind, dead_index, dead_tag, sent, expires, sum, key = unpacked(ELEMENT, element)
        b.hollow = b.hollow - (sum - before - #element)
        before = sum
        if key ~= '' then
          dead_keys = dead_keys or {}
          dead_keys[#dead_keys + 1] = key
          dead_keys[#dead_keys + 1] = dead_index
        end
      end
    end
  end
  local kind, last_index, last_tag, sent, expires, sum = unpacked(ELEMENT_TO_SUM, call('LINDEX', mail, drop - 1))
  b.from, b.from_tag, b.from_sum = last_index, last_tag, sum
end
if index < b.from then index, tag = b.from, b.from_tag end

-- Read a page, in pieces whose size is estimated from the average: one message may be large.
local reply = {status, b.epoch, format('%.0f', index), tag, format('%.0f', now)}
if status == 'ok' and max_messages > 0 and b.last > index then
  local average = math.max(1, (b.sum - b.from_sum - b.hollow) / (b.last - b.from))
  local at, stop, size = index - b.from + drop, b.last - b.from + drop, 0
  while at < stop and max_messages > 0 and size < max_bytes do
    local n = math.max(1, math.min(max_messages, math.floor((max_bytes - size) / average), 1000))
    for _, element in ipairs(call('LRANGE', mail, at, at + n - 1)) do
      size = size + #element
      if size > max_bytes and #reply > HEADER_SIZE then break end
      reply[#reply + 1] = element
      at, max_messages = at + 1, max_messages - 1
    end
  end
end

-- Write what has changed. The first write removes something, which Redis allows at maxmemory: acknowledging frees
-- memory.
local is_waiting = #reply == HEADER_SIZE and status == 'ok' and registration ~= '0'
local ttl = tonumber(limits[TTL])
local is_due, is_freed = ttl > 0 and b.due <= now, ttl == 0 and b.due > 0
if is_due or is_freed or not partitions or b.is_new or drop > 0 or begins or is_mine_new or has_moved or is_waiting then
  call('HDEL', box, '')
  if not partitions then call('HSET', meta, 'partitions', ARGV[1]) end
  local waiters = b.waiters
  if is_waiting then
    waiters = {pack(WAITER, process, now + tonumber(registration))}
    local at = 1
    while at <= #b.waiters do
      local other, ends
      other, ends, at = unpacked(WAITER, b.waiters, at)
      if other ~= process and ends > now then waiters[#waiters + 1] = pack(WAITER, other, ends) end
    end
    waiters = table.concat(waiters)
  end
  local rival = begins and holder and holder ~= poll and string.sub(holder, 1, 16)
  if (begins or is_mine_new) and holder ~= poll then
    local polls = {poll}
    for other in string.gmatch(mine.polls, '%S+') do
      if string.sub(other, 1, 16) ~= process and #polls < MAX_POLLS then polls[#polls + 1] = other end
    end
    mine.polls = table.concat(polls, ' ')
  end
  others[#others + 1] = pack(DEVICE, #device, device, mine.index, mine.tag, now, #mine.polls, mine.polls)
  if is_due then b.due = now + math.floor(ttl / 8) elseif is_freed then b.due = 0 end
  if drop > 0 then call('LTRIM', mail, drop, -1) end
  if dead_keys then
    for i = 1, #dead_keys, 2 do
      local field = 'k:' .. dead_keys[i]
      if tonumber(call('HGET', box, field)) == dead_keys[i + 1] then
        b.keyed = b.keyed - call('HDEL', box, field)
      end
    end
  end
  call('HSET', box, 'd', table.concat(others), 'w', waiters, 'm', pack(STATE, b.epoch, b.last, b.tag, b.from,
    b.from_tag, b.sum, b.from_sum, b.hollow, b.keyed, b.due))
  if is_due then
    local at = format('%.0f', now + ttl + math.floor(ttl / 8))
    call('PEXPIREAT', box, at)
    call('PEXPIREAT', mail, at)
  elseif is_freed then
    call('PERSIST', box)
    call('PERSIST', mail)
  end
  -- ':box:' is as long as ':meta'.
  local name, channel = string.sub(box, #meta + 1), string.sub(meta, 1, -5) .. 'wake:'
  if b.is_new then
    local growth = pack(GROWTH, b.epoch, b.last, b.tag, b.last, b.tag)
    try('PUBLISH', channel .. 'all', pack(HINT, #name, name, #growth, growth))
  end
  if rival and rival ~= process then try('PUBLISH', channel .. rival, pack(HINT_TO_READ, #name, name, 0)) end
end
return reply
