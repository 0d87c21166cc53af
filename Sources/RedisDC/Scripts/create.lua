-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state, partition_index = KEYS[1], KEYS[2]
local arguments = ARGV
local request_slot_field, request_number, request_resource_field = arguments[1], arguments[2] + 0, arguments[3]
local clock_now, clock_tick
local slot_session_field, slot_session_record
local call = redis.call
local slot_state, slot_number, slot_stored = 'd', 0, call('HGET', partition_state, request_slot_field)
local pack = struct.pack
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
    call('HSET', partition_state, slot_session_field, pack('<ddd', session_expires, session_notices, session_slots))
    return {'lost', 'ended'}
  end
  local slots_used = slot_of_session + 1
  if slots_used > session_slots then
    session_slots = slots_used
    slot_session_record = pack('<ddd', session_expires, session_notices, session_slots)
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
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created, resource_signalled, resource_field, resource_name, resource_stored, resource_tail
do
  local kind = arguments[4]
  local permits = arguments[5]
  resource_field, resource_tail, resource_stored = request_resource_field, '', call('HGET', partition_state,
    request_resource_field)
  if resource_stored then
    resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
      resource_limit, resource_created, resource_signalled = struct.unpack('<c2c1ddddddd', resource_stored)
    if slot_state == 'h' then
      local holder = sub(request_slot_field, 3) .. ':' .. string.format('%d', slot_number)
      if sub(slot_stored, 26, 26) ~= 'm' or sub(resource_stored, 60) == holder or resource_family == 'g' and
        call('ZSCORE', partition_index, 'h' .. sub(resource_field, 3) .. '\0' .. holder) then
        return {'occupied'}
      end
    end
    if resource_kind ~= kind then
      if resource_kind == 'xf' then
        return {'gone'}
      end
      if resource_kind == 'zf' then
        return {'broken'}
      end
      if sub(resource_kind, 1, 1) ~= kind then
        return {'conflict', resource_kind, resource_limit}
      end
    end
    if permits and permits ~= '' then
      local requested = permits + 0
      if resource_permits ~= requested and resource_limit ~= requested then
        return {'conflict', resource_kind, resource_limit}
      end
    end
    if resource_family ~= 'p' then
      return {'family', resource_family}
    end
  elseif permits == '' then
    return {'missing'}
  else
    resource_kind, resource_family, resource_permits = kind, 'p', permits == '1' and 1 or tonumber(permits or 1)
    resource_waiting, resource_free, resource_consumed = 0, resource_permits, 0
    resource_limit, resource_signalled = resource_permits, 0
  end
end
if not resource_stored then
  call('HSET', partition_state, request_slot_field, pack('<c1d', 'd', request_number))
end
local writes_hset, writes_hdel, writes_zadd, writes_zrem, writes_sessions
do
  local reply = resource_stored and '0' or '1'
  if not resource_stored then
    if not clock_now then
      local time = call('TIME')
      clock_now = time[1] * 1000000 + time[2]
    end
    clock_tick = struct.unpack('<d', call('HGET', partition_state, 'clock') or '\0\0\0\0\0\0\0\0') + 1
    if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
      clock_tick = clock_now
    end
    resource_created = clock_tick
  else
    resource_tail = sub(resource_stored, 60)
  end
  resource_name = sub(resource_field, 3)
  writes_hset, writes_hdel, writes_zadd, writes_zrem, writes_sessions = {request_slot_field, pack('<c1d', 'd',
    request_number) .. reply}, {}, {}, {}, {}
end
if resource_kind == 'cf' and resource_free > resource_waiting then
  resource_signalled, resource_free = resource_signalled - resource_free + resource_waiting, resource_waiting
end
if resource_kind then
  if resource_waiting == 0 and (resource_kind == 'cf' or resource_kind == 'pf' and resource_limit == 0 or (resource_kind
    == 'mf' or sub(resource_kind, 1, 1) == 'r') and resource_free == resource_limit) then
    writes_hdel[#writes_hdel + 1] = resource_field
  else
    local record = pack('<c2c1ddddddd', resource_kind, resource_family, resource_waiting, resource_free,
      resource_consumed, resource_permits, resource_limit, resource_created, resource_signalled) .. resource_tail
    writes_hset[#writes_hset + 1] = resource_field
    writes_hset[#writes_hset + 1] = record
  end
end
if slot_session_record then
  local session = writes_sessions[sub(slot_session_field, 3)]
  if session and session.is_changed then
    local own_expires, own_notices, own_slots = struct.unpack('<ddd', slot_session_record)
    session.slots, slot_session_record = own_slots, nil
  end
end
if clock_tick then
  local record = pack('<d', clock_tick)
  writes_hset[#writes_hset + 1] = 'clock'
  writes_hset[#writes_hset + 1] = record
end
for sid, session in pairs(writes_sessions) do
  if session.is_changed then
    local field = 's:' .. sid
    local record = pack('<ddd', session.expires, session.notices, session.slots)
    writes_hset[#writes_hset + 1] = field
    writes_hset[#writes_hset + 1] = record
  end
end
if slot_session_record then
  writes_hset[#writes_hset + 1] = slot_session_field
  writes_hset[#writes_hset + 1] = slot_session_record
end
if #writes_zrem > 0 then
  call('ZREM', partition_index, unpack(writes_zrem))
end
if #writes_hdel > 0 then
  call('HDEL', partition_state, unpack(writes_hdel))
end
if #writes_zadd > 0 or #writes_hset > 0 then
  if #writes_zrem == 0 and #writes_hdel == 0 then
    local written = redis.pcall('HSET', partition_state, unpack(writes_hset))
    if type(written) == 'table' then
      call('HDEL', partition_state, '')
      call('HSET', partition_state, unpack(writes_hset))
    end
  elseif #writes_hset > 0 then
    call('HSET', partition_state, unpack(writes_hset))
  end
  if #writes_zadd > 0 then
    call('ZADD', partition_index, unpack(writes_zadd))
  end
end
return resource_stored and 0 or 1
