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
  local permits = arguments[5] or '1'
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
local claim_tick
local claim_state, claim_number, claim_count, claim_mode, claim_priority = 'w', request_number, arguments[7] and
  tonumber(arguments[7]) or 1, arguments[6] or 'm', arguments[9] or '1'
if claim_mode == 'm' and not resource_stored and resource_kind == 'mf' and resource_permits == 1 and claim_count == 1
  and claim_priority == '1' then
  local fence
  do
    if not clock_now then
      local time = call('TIME')
      clock_now = time[1] * 1000000 + time[2]
    end
    clock_tick = unpacked('<d', call('HGET', partition_state, 'clock') or '\0\0\0\0\0\0\0\0') + 1
    if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
      clock_tick = clock_now
    end
    local tick = pack('<d', clock_tick)
    call('HSET', partition_state, request_slot_field, 'h' .. pack('<d', request_number) .. '\0\0\0\0\0\0\240?' .. tick
      .. 'm1' .. request_resource_field, request_resource_field,
      'mfp\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\240?\0\0\0\0\0\0\240?' .. tick ..
      '\0\0\0\0\0\0\0\0' .. sub(request_slot_field, 3) .. ':' .. request_number_text, 'clock', tick)
    if slot_session_record then
      call('HSET', partition_state, slot_session_field, slot_session_record)
    end
    fence = clock_tick
  end
  return fence
end
local reply
do
  local if_free = arguments[8]
  local passes = resource_free >= claim_count and (resource_waiting == 0 or resource_kind == 'sb')
  if not passes and resource_free >= claim_count and claim_priority == '0' then
    local name = sub(resource_field, 3)
    local from, to = '[q' .. name .. '\0000', '(q' .. name .. '\0001'
    passes = #call('ZRANGEBYLEX', partition_index, from, to, 'LIMIT', '0', '1') == 0
  end
  if passes and claim_mode == 'c' and resource_stored then
    claim_state, claim_tick = 'g', resource_created
    resource_free, resource_consumed = resource_free - claim_count, resource_consumed + claim_count
    call('HSET', partition_state, request_slot_field, pack('<c1dddc1c1', claim_state, claim_number, claim_count,
      claim_tick, claim_mode, claim_priority) .. resource_field, resource_field, pack('<c2c1ddddddd', resource_kind,
      resource_family, resource_waiting, resource_free, resource_consumed, resource_permits, resource_limit,
      resource_created, resource_signalled))
    if slot_session_record then
      call('HSET', partition_state, slot_session_field, slot_session_record)
    end
    return 1
  end
  if not passes then
    if resource_kind == 'mf' and resource_signalled > 0 and resource_waiting == 0 then
      local sid, number = string.match(sub(resource_stored, 60), '^(%w+):%d+:(%d+)$')
      if sid then
        call('PUBLISH', sub(partition_state, 1, -5) .. 'wake:' .. sid, '0 ' .. number .. ' recall')
      end
    end
    if if_free == '1' then
      return -1
    end
  end
  if not clock_now then
    local time = call('TIME')
    clock_now = time[1] * 1000000 + time[2]
  end
  clock_tick = unpacked('<d', call('HGET', partition_state, 'clock') or '\0\0\0\0\0\0\0\0') + 1
  if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
    clock_tick = clock_now
  end
  claim_tick, resource_created = clock_tick, resource_created or clock_tick
  local claim_id
  claim_id, reply = sub(request_slot_field, 3) .. ':' .. request_number_text, 0
  if passes then
    resource_free = resource_free - claim_count
    local reply_2 = claim_tick
    if claim_mode == 'c' then
      resource_consumed, claim_state, reply_2 = resource_consumed + claim_count, 'g', 1
    else
      claim_state = 'h'
      if claim_mode == 'm' then
        resource_tail = claim_id
      elseif claim_mode == 'k' then
        resource_tail, resource_signalled, reply_2 = claim_id, claim_tick + 1048576 - 1, {claim_tick, 1}
      else
        call('ZADD', partition_index, '0', 'h' .. sub(resource_field, 3) .. '\0' .. claim_id)
      end
    end
    reply = reply_2
  else
    call('ZADD', partition_index, '0', 'q' .. sub(resource_field, 3) .. '\0' .. claim_priority .. pack('>I8',
      claim_tick) .. claim_id)
    resource_waiting = resource_waiting + 1
    if resource_stored then
      resource_tail = sub(resource_stored, 60)
    end
  end
  call('HSET', partition_state, request_slot_field, pack('<c1dddc1c1', claim_state, claim_number, claim_count,
    claim_tick, claim_mode, claim_priority) .. resource_field, resource_field, pack('<c2c1ddddddd', resource_kind,
    resource_family, resource_waiting, resource_free, resource_consumed, resource_permits, resource_limit,
    resource_created, resource_signalled) .. resource_tail, 'clock', pack('<d', clock_tick))
  if slot_session_record then
    call('HSET', partition_state, slot_session_field, slot_session_record)
  end
end
return reply
