-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local partition_state, partition_index, partition_sessions, partition_values = keys[1], keys[2], keys[3], keys[4]
local arguments = ARGV
local sid, epoch_if_new, ttl, wanted_partitions = arguments[1], arguments[2], tonumber(arguments[3]), arguments[4]
local call = redis.call
for i, expected_type in ipairs({'hash', 'zset', 'zset', 'hash'}) do
  local key = keys[i]
  local type_found = call('TYPE', key).ok
  if type_found ~= expected_type and type_found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. key .. ' holds a ' .. type_found .. ', not a table of the engine')
  end
end
local now
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local stored = call('HMGET', partition_state, 'epoch', 'partitions', 's:' .. sid, 'watchers')
local epoch, partitions, stored_session, watchers = stored[1], stored[2], stored[3], stored[4]
if epoch and partitions ~= wanted_partitions then
  return {'conflict', partitions or ''}
end
local session_expires, session_notices, session_slots = now + ttl, 0, 0
if stored_session and #stored_session == 24 then
  session_expires, session_notices, session_slots = struct.unpack('<ddd', stored_session)
  if session_expires <= now then
    return {'lost'}
  end
  session_expires = now + ttl
end
if not epoch then
  call('UNLINK', partition_sessions, partition_index, partition_values)
  local clock = struct.pack('<d', now)
  call('HSET', partition_state, 'epoch', epoch_if_new, 'clock', clock, 'partitions', wanted_partitions)
end
local format = string.format
do
  local about = arguments[5]
  call('ZADD', partition_index, '0', 'a')
  call('HSET', partition_values, '', '')
  call('HSET', partition_state, 's:' .. sid, struct.pack('<ddd', session_expires, session_notices, session_slots), 'i:'
    .. sid, about)
  call('ZADD', partition_sessions, format('%d', session_expires), sid)
end
do
  local fence = tonumber(arguments[6] or 0)
  local clock = call('HGET', partition_state, 'clock')
  local is_believed = fence < now + 86400000000
  if not clock or #clock ~= 8 or is_believed and struct.unpack('<d', clock) < fence then
    local raised = struct.pack('<d', math.max(now, is_believed and fence or 0))
    call('HSET', partition_state, 'clock', raised)
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
    call('PUBLISH', string.sub(partition_state, 1, -5) .. 'wake:' .. called[i], 'look')
  end
  next_heartbeat = math.floor(wait)
end
local has_expired
repeat
  local sid_2 = arguments[7] or ''
  if sid_2 == '' then
    has_expired = false
    break
  end
  local stored_2 = call('HMGET', partition_state, 's:' .. sid_2, 'swept')
  if stored_2[1] then
    has_expired = true
    break
  end
  local swept = stored_2[2] or '0'
  if string.find(swept, ' ' .. sid_2 .. ':', 1, true) then
    has_expired = true
    break
  end
  local is_complete = tonumber(string.match(swept, '^%d+') or now) < now - 60000000
  has_expired = not is_complete
until true
return {'ok', epoch or epoch_if_new, next_heartbeat, has_expired and 1 or 0}
