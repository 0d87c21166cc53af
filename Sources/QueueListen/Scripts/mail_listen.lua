-- Takes an acknowledgement, deletes what all have acknowledged, and reads on; if there is nothing, notes who waits.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] to [10] as in mail_head and mail_limits  [11] device  [12] process, 16 characters  [13] poll, a number  which
--     grows  [14] 1: the poll begins, or may have begun; 0: it reads again; 2: there is no poll, only an acknowledgement
--     [15] ms for which the process wants to be woken, 0: not at all
--     [16] cursor: index, or empty: where this device has got to  [17] its epoch, 8 bytes  [18] its tag, 8 bytes
--     [19] most messages  [20] most bytes, but always one message
-- Reply: {status, epoch, index, tag, now, messages…}: the position before the first message, ms of the server, and the
--     messages as they lie in the list. Statuses: ok; superseded: a newer poll of this device has begun; and, of the
--     cursor: reset (another epoch), forked (the mailbox does not have what the cursor has seen), truncated (messages
--     after it are gone): then the position is where reading can begin anew. {'devices'}: too many of them.
local b, foreign = open(KEYS[2], KEYS[3])
if not b then return {'foreign', foreign} end
if b.limits then
  limits = {}
  for word in string.gmatch(b.limits, '%S+') do limits[#limits + 1] = word end
end
local device, process = ARGV[11], ARGV[12]
local poll = process .. ':' .. ARGV[13]
local forget = tonumber(limits[8])

-- The devices, without those that have not been seen for too long.
local mine, others, least = nil, {}, nil
local number = 0
do
  local at, name, index, tag, seen, polls = 1, nil, nil, nil, nil, nil
  while at <= #b.devices do
    local start = at
    name, index, tag, seen, polls, at = unpacked('<Bc0dc8dBc0', b.devices, at)
    if name == device then
      mine = {index = index, tag = tag, polls = polls}
    elseif forget == 0 or seen + forget > now then
      others[#others + 1] = string.sub(b.devices, start, at - 1)
      number = number + 1
      if not least or index < least then least = index end
    end
  end
end
-- A poll that has begun before and is not the last one has been superseded, also when its first answer was lost.
local begins, holder, has_begun = ARGV[14] == '1', nil, false
if mine then
  holder = string.match(mine.polls, '^%S+')
  local _, colon = string.find(' ' .. mine.polls, ' ' .. process .. ':', 1, true)
  if colon then has_begun = tonumber(string.match(mine.polls, '^%d+', colon)) >= tonumber(ARGV[13]) end
end
if mine and holder ~= poll and (ARGV[14] == '0' or begins and has_begun) then
  return {'superseded', b.epoch, b.from, b.from_tag, format('%.0f', now)}
end
if not mine and number >= 64 then return {'devices'} end

-- The cursor, checked.
local index, tag, status = tonumber(ARGV[16]), ARGV[18], 'ok'
if not index then
  if mine then
    index, tag = mine.index, mine.tag
    if index < b.from then index, tag = b.from, b.from_tag end
  else
    index, tag = b.from, b.from_tag
  end
elseif ARGV[17] ~= b.epoch then
  status = 'reset'
end
if status == 'ok' then
  if index > b.last then
    status = 'forked'
  elseif index < b.from then
    status = 'truncated'
  else
    local found
    if index == b.last then
      found = b.tag
    elseif index == b.from then
      found = b.from_tag
    else
      local _
      _, _, found = unpacked('<c1I6c8', call('LINDEX', b.mail, index - b.from - 1))
    end
    if found ~= tag then status = 'forked' end
  end
end
local is_mine_new, has_moved = not mine, false
mine = mine or {index = b.from, tag = b.from_tag, polls = ''}
if status == 'ok' then
  -- Monotone: an older cursor reads again what is still there, and takes no acknowledgement back.
  if index > mine.index then mine.index, mine.tag, has_moved = index, tag, true end
else
  index, tag = b.from, b.from_tag
  mine.index, mine.tag = index, tag
end

-- What every device has acknowledged goes, but for what is kept for late ones.
local cut = mine.index
if least and least < cut then cut = least end
cut = math.min(cut, b.last - tonumber(limits[6]))
local keep = tonumber(limits[7])
if keep > 0 and cut > b.from then
  -- The first message that is young enough to be kept.
  local low, high = 0, cut - b.from
  while low < high do
    local middle = math.floor((low + high) / 2)
    local _, _, _, at = unpacked('<c1I6c8I6', call('LINDEX', b.mail, middle))
    if at < now - keep then low = middle + 1 else high = middle end
  end
  cut = b.from + low
end
local drop, dead_keys = 0, nil
if cut > b.from then
  drop = cut - b.from
  if b.keyed > 0 or b.hollow > 0 then
    local before = b.from_sum
    for first = 0, drop - 1, 256 do
      for _, element in ipairs(call('LRANGE', b.mail, first, math.min(drop - 1, first + 255))) do
        local _, at, _, _, _, sum, key = unpacked('<c1I6c8I6I6I6Bc0', element)
        b.hollow = b.hollow - (sum - before - #element)
        before = sum
        if key ~= '' then
          dead_keys = dead_keys or {}
          dead_keys[#dead_keys + 1] = key
          dead_keys[#dead_keys + 1] = at
        end
      end
    end
  end
  local _, at, its_tag, _, _, sum = unpacked('<c1I6c8I6I6I6', call('LINDEX', b.mail, drop - 1))
  b.from, b.from_tag, b.from_sum = at, its_tag, sum
end
if index < b.from then index, tag = b.from, b.from_tag end

-- A page, read in pieces whose size is guessed from the average: one message may be large.
local reply = {status, b.epoch, format('%.0f', index), tag, format('%.0f', now)}
local most, most_bytes = tonumber(ARGV[19]), tonumber(ARGV[20])
if status == 'ok' and most > 0 and b.last > index then
  local average = math.max(1, (b.sum - b.from_sum - b.hollow) / (b.last - b.from))
  local at, stop, size = index - b.from + drop, b.last - b.from + drop, 0
  while at < stop and most > 0 and size < most_bytes do
    local n = math.max(1, math.min(most, math.floor((most_bytes - size) / average), 1000))
    for _, element in ipairs(call('LRANGE', b.mail, at, at + n - 1)) do
      size = size + #element
      if size > most_bytes and #reply > 5 then break end
      reply[#reply + 1] = element
      at, most = at + 1, most - 1
    end
  end
end

-- What has changed. Taking something away first lets it pass at maxmemory: acknowledging is what frees memory.
local is_waiting = #reply == 5 and status == 'ok' and ARGV[15] ~= '0'
local ttl = tonumber(limits[5])
local is_due, is_freed = ttl > 0 and b.due <= now, ttl == 0 and b.due > 0
if is_due or is_freed or not partitions or b.is_new or drop > 0 or begins or is_mine_new or has_moved or is_waiting then
  call('HDEL', b.box, '')
  if not partitions then call('HSET', KEYS[1], 'partitions', ARGV[1]) end
  local waiters = b.waiters
  if is_waiting then
    waiters = {pack('<c16d', process, now + tonumber(ARGV[15]))}
    local at = 1
    while at <= #b.waiters do
      local other, ends
      other, ends, at = unpacked('<c16d', b.waiters, at)
      if other ~= process and ends > now then waiters[#waiters + 1] = pack('<c16d', other, ends) end
    end
    waiters = table.concat(waiters)
  end
  local rival = begins and holder and holder ~= poll and string.sub(holder, 1, 16)
  if (begins or is_mine_new) and holder ~= poll then
    local polls = {poll}
    for other in string.gmatch(mine.polls, '%S+') do
      if string.sub(other, 1, 16) ~= process and #polls < 4 then polls[#polls + 1] = other end
    end
    mine.polls = table.concat(polls, ' ')
  end
  others[#others + 1] = pack('<Bc0dc8dBc0', #device, device, mine.index, mine.tag, now, #mine.polls, mine.polls)
  if is_due then b.due = now + math.floor(ttl / 8) elseif is_freed then b.due = 0 end
  if drop > 0 then call('LTRIM', b.mail, drop, -1) end
  if dead_keys then
    for i = 1, #dead_keys, 2 do
      local field = 'k:' .. dead_keys[i]
      if tonumber(call('HGET', b.box, field)) == dead_keys[i + 1] then
        b.keyed = b.keyed - call('HDEL', b.box, field)
      end
    end
  end
  call('HSET', b.box, 'd', table.concat(others), 'w', waiters, 'm', pack('<c8dc8dc8ddddd', b.epoch, b.last, b.tag, b.from,
    b.from_tag, b.sum, b.from_sum, b.hollow, b.keyed, b.due))
  if is_due then
    local at = format('%.0f', now + ttl + math.floor(ttl / 8))
    call('PEXPIREAT', b.box, at)
    call('PEXPIREAT', b.mail, at)
  elseif is_freed then
    call('PERSIST', b.box)
    call('PERSIST', b.mail)
  end
  -- ':box:' is as long as ':meta'.
  local name, channel = string.sub(b.box, #KEYS[1] + 1), string.sub(KEYS[1], 1, -5) .. 'wake:'
  if b.is_new then
    local at = pack('<c8I6c8I6c8', b.epoch, b.last, b.tag, b.last, b.tag)
    try('PUBLISH', channel .. 'all', pack('<Hc0Hc0', #name, name, #at, at))
  end
  if rival and rival ~= process then try('PUBLISH', channel .. rival, pack('<Hc0H', #name, name, 0)) end
end
return reply
