-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state, partition_sessions = KEYS[1], KEYS[3]
local sid = ARGV[1]
local call = redis.call
local stored = call('HMGET', partition_state, 's:' .. sid, 'watchers')
local stored_session = stored[1]
if not (stored_session and #stored_session == 24) then
  return 1
end
call('HDEL', partition_state, '')
local session_expires, session_notices, session_slots = struct.unpack('<ddd', stored_session)
local first = math.max(0, session_slots - 1024)
local fields = {}
local format = string.format
for slot = first, session_slots - 1 do
  fields[#fields + 1] = 'c:' .. sid .. ':' .. format('%d', slot)
end
local is_idle = true
local sub = string.sub
if session_slots > 0 then
  local is_idle_2 = true
  for i, stored_2 in ipairs(call('HMGET', partition_state, unpack(fields))) do
    local is_occupied
    repeat
      local slot_field = fields[i]
      if not stored_2 or sub(stored_2, 1, 1) == 'd' then
        is_occupied = false
        break
      end
      if sub(stored_2, 26, 26) ~= 'm' or sub(stored_2, 1, 1) ~= 'h' then
        is_occupied = true
        break
      end
      local slot_state, slot_number = struct.unpack('<c1d', stored_2)
      local resource = call('HGET', partition_state, sub(stored_2, 28))
      if not resource then
        is_occupied = false
        break
      end
      is_occupied = sub(resource, 3, 3) ~= 'p' or sub(resource, 60) == sub(slot_field, 3) .. ':' .. format('%d',
        slot_number)
    until true
    if is_occupied then
      is_idle_2 = false
    end
  end
  is_idle = is_idle_2
end
if is_idle then
  if session_slots > 0 then
    call('HDEL', partition_state, unpack(fields))
  end
  session_slots = first
end
local list, others, was_watcher
do
  local watchers = stored[2] or ''
  list, others, was_watcher = {}, {}, false
  for other, promise in string.gmatch(watchers, '(%w+)(:%d+:%d+)') do
    if other == sid then
      was_watcher = true
    else
      list[#list + 1] = other .. promise
      others[#others + 1] = other
    end
  end
end
local is_calling = not is_idle or was_watcher and #others == 0
if is_calling and #others == 0 then
  local now
  do
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  local lasting = call('ZRANGEBYSCORE', partition_sessions, format('(%d', now), '+inf', 'LIMIT', '0', '4')
  for i = 1, #lasting do
    if lasting[i] ~= sid and #others < 3 then
      others[#others + 1] = lasting[i]
    end
  end
end
if session_slots == 0 then
  call('HDEL', partition_state, 's:' .. sid, 'i:' .. sid)
  call('ZREM', partition_sessions, sid)
else
  session_expires = 0
  call('HSET', partition_state, 's:' .. sid, struct.pack('<ddd', session_expires, session_notices, session_slots))
  call('ZADD', partition_sessions, '0', sid)
end
if was_watcher then
  call('HSET', partition_state, 'watchers', table.concat(list, ' '))
end
if is_calling then
  for i = 1, #others do
    call('PUBLISH', sub(partition_state, 1, -5) .. 'wake:' .. others[i], 'look')
  end
end
return is_idle and session_slots > 0 and {'more', 1} or 1
