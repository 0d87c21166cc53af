-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local partition_state, partition_index, partition_sessions = keys[1], keys[2], keys[3]
local arguments = ARGV
local sid, ttl, changed_slot = arguments[1], tonumber(arguments[2]), arguments[3]
local call = redis.call
local stored = call('HMGET', partition_state, 's:' .. sid, 'watchers', 'rechecked')
local stored_session, watchers, rechecked = stored[1], stored[2], stored[3] or ''
if not (stored_session and #stored_session == 24) then
  return {'lost'}
end
local unpacked = struct.unpack
local session_expires, session_notices, session_slots = unpacked('<ddd', stored_session)
local now
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
call('HDEL', partition_state, '')
if session_expires <= now then
  session_expires = 0
  call('HSET', partition_state, 's:' .. sid, struct.pack('<ddd', session_expires, session_notices, session_slots))
  call('ZADD', partition_sessions, '0', sid)
  return {'lost', 'ended'}
end
session_expires = now + ttl
repeat
  local connection = arguments[7] or 0
  local first_notice = connection * 4294967296
  if session_notices >= first_notice and session_notices < 9007199254740992 then
    break
  end
  session_notices = first_notice
until true
call('HSET', partition_state, 's:' .. sid, struct.pack('<ddd', session_expires, session_notices, session_slots))
local format = string.format
local is_unlisted = call('ZADD', partition_sessions, format('%d', session_expires), sid)
do
  local fence = tonumber(arguments[6] or 0)
  local clock = call('HGET', partition_state, 'clock')
  local tick = clock and #clock == 8 and unpacked('<d', clock) or -1
  if fence > now + 86400000000 then
    fence = 0
  end
  if not (tick >= fence and tick < 9007199254740992) then
    if not (tick >= 0 and tick < 9007199254740992) then
      tick = now
    end
    call('HSET', partition_state, 'clock', struct.pack('<d', math.max(tick, fence)))
  end
end
local is_data_lost = false
local sub = string.sub
if changed_slot ~= '' then
  repeat
    local number_text = arguments[4]
    local is_end = arguments[5] == '1'
    local stored_2 = call('HGET', partition_state, 'c:' .. sid .. ':' .. changed_slot)
    local number = tonumber(number_text)
    local slot_state, slot_number = 'd', 0
    if stored_2 then
      slot_state, slot_number = unpacked('<c1d', stored_2)
    end
    if slot_number ~= number then
      is_data_lost = slot_number < number
      break
    end
    if not is_end or slot_state == 'd' then
      is_data_lost = false
      break
    end
    local has_ended
    repeat
      local id = sid .. ':' .. changed_slot .. ':' .. number_text
      local mode = sub(stored_2, 26, 26)
      if sub(stored_2, 1, 1) ~= 'h' or mode ~= 'm' and mode ~= 'k' then
        has_ended = false
        break
      end
      local resource = call('HGET', partition_state, sub(stored_2, 28))
      has_ended = (not resource or sub(resource, 60) ~= id) and not call('ZSCORE', partition_index, 'h' .. sub(stored_2,
        30) .. '\0' .. id)
    until true
    is_data_lost = not has_ended
  until true
end
local expired = call('ZRANGEBYSCORE', partition_sessions, format('%d', -now), format('%d', now), 'LIMIT', '0', '64')
if #expired == 0 then
  expired = call('ZRANGEBYSCORE', partition_sessions, '-inf', format('(%d', -now - 1000000), 'LIMIT', '0', '64')
end
for i = 1, #expired do
  call('ZADD', partition_sessions, format('%d', -now - 1000000), expired[i])
end
local rechecks
do
  rechecks = call('ZRANGEBYLEX', partition_index, '(t' .. rechecked, '(u', 'LIMIT', '0', '16')
  if #rechecks == 0 and rechecked ~= '' then
    rechecks = call('ZRANGEBYLEX', partition_index, '[t', '(u', 'LIMIT', '0', '16')
  end
  for i = 1, #rechecks do
    rechecks[i] = sub(rechecks[i], 2)
  end
  local last = #rechecks == 16 and rechecks[16] or ''
  if last ~= rechecked then
    call('HSET', partition_state, 'rechecked', last)
  end
end
local next_heartbeat
do
  local list, shortest, called, is_missed = {}, nil, {}, false
  for other, promise, other_ttl in string.gmatch(watchers or '', '(%w+):(%d+):(%d+)') do
    promise, other_ttl = tonumber(promise), tonumber(other_ttl)
    if other ~= sid then
      if promise + 1000000 < now or promise > now + other_ttl then
        is_missed = true
      else
        if promise > now + ttl then
          called[#called + 1] = other
          promise = now
        end
        list[#list + 1] = {sid = other, promise = promise, ttl = other_ttl}
        if not shortest or other_ttl < list[shortest].ttl then
          shortest = #list
        end
      end
    end
  end
  local is_watcher = #list < 3
  if not is_watcher and list[shortest].ttl < ttl then
    table.remove(list, shortest)
    is_watcher = true
  end
  local wait, usual_wait = 0, math.floor(ttl / 3)
  if is_watcher then
    do
      local next_ones = call('ZRANGEBYSCORE', partition_sessions, format('(%d', now), '+inf', 'WITHSCORES', 'LIMIT',
        '0', '2')
      local expires = next_ones[next_ones[1] == sid and 4 or 2]
      wait = expires and math.min(usual_wait, math.max(expires - now, 250000)) or usual_wait
    end
    list[#list + 1] = {sid = sid, promise = now + wait, ttl = ttl}
    if wait == usual_wait then
      wait = 0
    end
  end
  do
    local texts = {}
    for i = 1, #list do
      texts[i] = format('%s:%d:%d', list[i].sid, list[i].promise, list[i].ttl)
    end
    local text = table.concat(texts, ' ')
    if text ~= watchers then
      call('HSET', partition_state, 'watchers', text)
    end
  end
  if is_missed then
    local lasting = call('ZRANGEBYSCORE', partition_sessions, format('(%d', now + ttl), '+inf', 'LIMIT', '0', '3')
    for i = 1, #lasting do
      called[#called + 1] = lasting[i]
    end
  end
  for i = 1, #called do
    call('PUBLISH', sub(partition_state, 1, -5) .. 'wake:' .. called[i], 'look')
  end
  next_heartbeat = math.floor(wait)
end
return {'ok', session_notices, is_data_lost and 1 or 0, expired, rechecks, is_unlisted, next_heartbeat}
