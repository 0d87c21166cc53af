-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state, partition_index = KEYS[1], KEYS[2]
local arguments = ARGV
local request_slot_field, request_number, request_resource_field = arguments[1], arguments[2] + 0, arguments[3]
local clock_now
local slot_session_field, slot_session_record
local call = redis.call
local slot_state, slot_number, slot_stored = 'd', 0, call('HGET', partition_state, request_slot_field)
if slot_stored and #slot_stored >= 9 then
  slot_state, slot_number = struct.unpack('<c1d', slot_stored)
  if request_number < slot_number then
    return {'stale'}
  end
else
  local sid, slot_of_session = string.match(request_slot_field, '^c:(.*):(%d+)$')
  slot_session_field = 's:' .. sid
  local stored = call('HGET', partition_state, slot_session_field)
  if not stored or #stored ~= 24 then
    return {'lost'}
  end
  local session_expires, session_notices, session_slots = struct.unpack('<ddd', stored)
  if not clock_now then
    local time = call('TIME')
    clock_now = time[1] * 1000000 + time[2]
  end
  if session_expires <= clock_now then
    call('HDEL', partition_state, '')
    session_expires = 0
    call('HSET', partition_state, slot_session_field, struct.pack('<ddd', session_expires, session_notices,
      session_slots))
    return {'lost', 'ended'}
  end
  local slots_used = slot_of_session + 1
  if slots_used > session_slots then
    session_slots = slots_used
    slot_session_record = struct.pack('<ddd', session_expires, session_notices, session_slots)
  end
end
local sub = string.sub
if request_number == slot_number then
  return tonumber(sub(slot_stored, 10)) or 1
end
if slot_state == 'w' then
  return {'occupied'}
end
if slot_state == 'h' and sub(slot_stored, 28) ~= request_resource_field then
  if sub(slot_stored, 26, 26) ~= 'm' then
    return {'occupied'}
  end
  local held = call('HGET', partition_state, sub(slot_stored, 28))
  local holder = sub(request_slot_field, 3) .. ':' .. string.format('%d', slot_number)
  if held and (sub(held, 60) == holder or call('ZSCORE', partition_index, 'h' .. sub(slot_stored, 30) .. '\0' ..
    holder)) then
    return {'occupied'}
  end
end
call('HDEL', partition_state, '')
call('HSET', partition_state, request_slot_field, struct.pack('<c1d', 'd', request_number) .. '-1')
if slot_session_record then
  call('HSET', partition_state, slot_session_field, slot_session_record)
end
return -1
