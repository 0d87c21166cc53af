-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state, partition_index = KEYS[1], KEYS[2]
local arguments = ARGV
local request_slot_field, request_number, request_number_text, request_resource_field = arguments[1], arguments[2] + 0,
  arguments[2], arguments[3]
local clock_now, clock_tick
local slot_session_field, slot_session_record
local call = redis.call
local slot_state, slot_number, slot_stored = 'd', 0, call('HGET', partition_state, request_slot_field)
local pack, unpacked = struct.pack, struct.unpack
if slot_stored and #slot_stored >= 9 then
  slot_state, slot_number = unpacked('<c1d', slot_stored)
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
  local session_expires, session_notices, session_slots = unpacked('<ddd', stored)
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
  if slot_state == 'd' then
    return {'over', sub(slot_stored, 10)}
  end
  if slot_state == 'w' then
    return 0
  end
  local claim_state, claim_number, claim_count, claim_tick, claim_mode = unpacked('<c1dddc1c1', slot_stored)
  return {claim_tick, claim_mode == 'k' and 0 or claim_count}
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
  resource_limit, resource_created, resource_signalled, resource_field, resource_stored, resource_tail
do
  local kind = arguments[4]
  local permits = arguments[5]
  resource_field, resource_tail, resource_stored = request_resource_field, '', call('HGET', partition_state,
    request_resource_field)
  if resource_stored then
    resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
      resource_limit, resource_created, resource_signalled = unpacked('<c2c1ddddddd', resource_stored)
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
  resource_free = resource_limit == 0 and 1125899906842624 or 0
end
local fence
do
  local mode = arguments[6]
  if resource_kind == 'pf' and resource_limit >= 1024 then
    local name = sub(resource_field, 3)
    return redis.error_reply('RDC the phaser ' .. name .. ' has 1024 parties, which is the most')
  end
  if not clock_now then
    local time = call('TIME')
    clock_now = time[1] * 1000000 + time[2]
  end
  clock_tick = unpacked('<d', call('HGET', partition_state, 'clock') or '\0\0\0\0\0\0\0\0') + 1
  if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
    clock_tick = clock_now
  end
  resource_created = resource_created or clock_tick
  if resource_stored then
    resource_tail = sub(resource_stored, 60)
  end
  if resource_kind == 'pf' then
    resource_limit = resource_limit + 1
  end
  local line
  do
    local name = sub(resource_field, 3)
    local claim_id = sub(request_slot_field, 3) .. ':' .. request_number_text
    line = 'h' .. name .. '\0' .. claim_id
  end
  call('ZADD', partition_index, '0', line)
  local claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority = 'h', request_number, 1,
    clock_tick, mode, '1'
  call('HSET', partition_state, request_slot_field, pack('<c1dddc1c1', claim_state, claim_number, claim_count,
    claim_tick, claim_mode, claim_priority) .. resource_field, resource_field, pack('<c2c1ddddddd', resource_kind,
    resource_family, resource_waiting, resource_free, resource_consumed, resource_permits, resource_limit,
    resource_created, resource_signalled) .. resource_tail, 'clock', pack('<d', clock_tick))
  if slot_session_record then
    call('HSET', partition_state, slot_session_field, slot_session_record)
  end
  fence = clock_tick
end
return fence
