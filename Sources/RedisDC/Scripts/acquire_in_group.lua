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
local claim_tick
local claim_state, claim_number, claim_count, claim_mode, claim_priority = 'w', request_number, arguments[7] and
  tonumber(arguments[7]) or 1, arguments[6] or 'm', arguments[9] or '1'
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created, resource_signalled, resource_field, resource_name, resource_stored, resource_tail
do
  local kind = arguments[4]
  local permits = arguments[5] or '1'
  local is_member = claim_mode == 't'
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
    if resource_family ~= 'g' and not is_member then
      return {'family', resource_family}
    end
  elseif permits == '' then
    return {'missing'}
  else
    resource_kind, resource_family, resource_permits = kind, 'g', permits == '1' and 1 or tonumber(permits or 1)
    resource_waiting, resource_free, resource_consumed = 0, resource_permits, 0
    resource_limit, resource_signalled = resource_permits, 0
  end
end
resource_name = sub(resource_field, 3)
local writes_wakeups
local writes_hset, writes_hdel, writes_zadd, writes_zrem, writes_sessions = {}, {}, {}, {}, {}
local fences_used, note, members = 0, '', 0
if resource_family == 'p' then
  local fences_used_2 = 0
  resource_family = 'g'
  local holder = sub(resource_stored, 60)
  if holder ~= '' then
    local line = 'h' .. resource_name .. '\0' .. holder
    writes_zadd[#writes_zadd + 1] = '0'
    writes_zadd[#writes_zadd + 1] = line
  end
  if resource_kind == 'mf' and resource_signalled > 0 then
    fences_used_2, resource_signalled = resource_signalled, 0
    local sid, number = string.match(holder, '^(%w+):%d+:(%d+)$')
    if sid then
      writes_wakeups = {[sid] = number .. ' recall'}
    end
  end
  fences_used = fences_used_2
end
if claim_mode == 't' then
  note = '\0' .. arguments[10]
  local members_2 = 0
  local stored = call('HGET', partition_state, 'g:' .. resource_name .. note)
  if stored then
    local group_members, group_created = unpacked('<dd', stored)
    if group_created == resource_created then
      members_2 = group_members
    end
  end
  members = members_2
end
local passes
do
  local is_free = resource_free >= claim_count
  passes = members > 0 or is_free and (resource_waiting == 0 or resource_kind == 'sb' and claim_mode ~= 't')
  if is_free and not passes and claim_priority == '0' then
    local from, to = '[q' .. resource_name .. '\0000', '(q' .. resource_name .. '\0001'
    passes = #call('ZRANGEBYLEX', partition_index, from, to, 'LIMIT', '0', '1') == 0
  end
end
if not passes and arguments[8] == '1' then
  return -1
end
do
  if not clock_now then
    local time = call('TIME')
    clock_now = time[1] * 1000000 + time[2]
  end
  local last = unpacked('<d', call('HGET', partition_state, 'clock') or '\0\0\0\0\0\0\0\0')
  clock_tick = math.max(fences_used, last) + 1
  if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
    clock_tick = clock_now
  end
end
claim_tick, resource_created = clock_tick, resource_created or clock_tick
local claim_id, reply = sub(request_slot_field, 3) .. ':' .. request_number_text, 0
if passes then
  local reply_2 = claim_tick
  if claim_mode == 'c' then
    call('HSET', partition_state, 'clock', pack('<d', claim_tick))
    resource_free, resource_consumed = resource_free - claim_count, resource_consumed + claim_count
    claim_state, reply_2 = 'g', 1
  else
    call('ZADD', partition_index, '0', 'h' .. resource_name .. '\0' .. claim_id)
    claim_state = 'h'
    if claim_mode == 't' then
      do
        local field = 'g:' .. resource_name .. note
        local record = pack('<dd', members + 1, resource_created)
        writes_hset[#writes_hset + 1] = field
        writes_hset[#writes_hset + 1] = record
      end
      if members == 0 then
        resource_free = resource_free - claim_count
      end
      claim_count = 0
    else
      resource_free = resource_free - claim_count
    end
  end
  reply = reply_2
else
  call('ZADD', partition_index, '0', 'q' .. resource_name .. '\0' .. claim_priority .. pack('>I8', claim_tick) ..
    claim_id)
  resource_waiting = resource_waiting + 1
  if claim_mode == 't' then
    local line = 'g' .. resource_name .. note .. '\0' .. claim_id
    writes_zadd[#writes_zadd + 1] = '0'
    writes_zadd[#writes_zadd + 1] = line
  end
end
do
  local record = pack('<c1dddc1c1', claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority) ..
    resource_field .. note
  writes_hset[#writes_hset + 1] = request_slot_field
  writes_hset[#writes_hset + 1] = record
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
    local own_expires, own_notices, own_slots = unpacked('<ddd', slot_session_record)
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
if writes_wakeups then
  local channel = sub(partition_state, 1, -5) .. 'wake:'
  for owner, text in pairs(writes_wakeups) do
    local session = writes_sessions[owner]
    call('PUBLISH', channel .. owner, string.format('%d ', session and session.is_changed and session.notices or 0) ..
      text)
  end
end
return reply
