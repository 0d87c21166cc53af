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
do
  local count = arguments[6] and tonumber(arguments[6]) or 1
  resource_free, resource_signalled = resource_free + count, resource_signalled + count
end
if resource_stored and resource_waiting == 0 and resource_kind ~= 'cf' then
  local written = redis.pcall('HSET', partition_state, request_slot_field, pack('<c1d', 'd', request_number),
    resource_field, pack('<c2c1ddddddd', resource_kind, resource_family, resource_waiting, resource_free,
    resource_consumed, resource_permits, resource_limit, resource_created, resource_signalled))
  if written == 0 or type(written) == 'number' then
    if slot_session_record then
      call('HSET', partition_state, slot_session_field, slot_session_record)
    end
    return 1
  end
end
local reply
do
  local writes_hset, writes_hdel, writes_zadd, writes_zrem, writes_sessions, writes_wakeups
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
    request_number) .. '1'}, {}, {}, {}, {}
  local is_left_over = false
  if resource_kind and resource_waiting > 0 and resource_free > 0 and resource_kind ~= 'xf' and resource_kind ~= 'zf'
    then
    writes_wakeups = writes_wakeups or {}
    if resource_kind == 'sb' then
      local name = resource_name
      local lines = call('ZRANGEBYLEX', partition_index, '[q' .. name .. '\0', '(q' .. name .. '\1', 'LIMIT', '0', '2')
      local line = lines[1] ~= writes_zrem[1] and lines[1] or lines[2]
      if line then
        local waiter_id, waiter_sid, waiter_number
        do
          local claim_at = #name + 12
          waiter_id = sub(line, claim_at)
          local slot_id
          slot_id, waiter_sid, waiter_number = string.match(waiter_id, '^(([^:]*):[^:]*):(.*)$')
        end
        writes_wakeups[waiter_sid] = (writes_wakeups[waiter_sid] and writes_wakeups[waiter_sid] .. ' ' or '') ..
          waiter_number .. ' try'
        writes_zadd[#writes_zadd + 1] = '0'
        writes_zadd[#writes_zadd + 1] = 't' .. name
      end
    else
      if not clock_now then
        local time = call('TIME')
        clock_now = time[1] * 1000000 + time[2]
      end
      local name = resource_name
      local queue_from, queue_to, queue_claim_at, queue_offset, queue_removed, queue_budget, queue_is_blocked = '[q' ..
        name .. '\0', '(q' .. name .. '\1', #name + 12, 0, writes_zrem[1], 128, false
      while resource_waiting > 0 and resource_free > 0 and queue_budget > 0 and not queue_is_blocked do
        local lines = call('ZRANGEBYLEX', partition_index, queue_from, queue_to, 'LIMIT', queue_offset, queue_offset ==
          0 and '1' or '32')
        queue_offset = queue_offset + #lines
        if #lines == 0 then
          resource_waiting = 0
        end
        for i = 1, #lines do
          if queue_budget == 0 or resource_free <= 0 then
            break
          end
          if lines[i] ~= queue_removed then
            do
              local line = lines[i]
              local waiter_line, waiter_id, waiter_sid, waiter_number, waiter_slot_field
              do
                waiter_line, waiter_id = line, sub(line, queue_claim_at)
                local slot_id
                slot_id, waiter_sid, waiter_number = string.match(waiter_id, '^(([^:]*):[^:]*):(.*)$')
                waiter_slot_field = 'c:' .. slot_id
              end
              local session, stored = writes_sessions[waiter_sid], nil
              if session then
                stored = call('HGET', partition_state, waiter_slot_field)
              else
                local records = call('HMGET', partition_state, waiter_slot_field, 's:' .. waiter_sid)
                stored = records[1]
                session = {expires = 0}
                if records[2] and #records[2] == 24 then
                  session.expires, session.notices, session.slots = struct.unpack('<ddd', records[2])
                end
                writes_sessions[waiter_sid] = session
              end
              local claim_count, claim_tick, claim_mode, claim_priority
              local claim_state, claim_number = 'd', 0
              if stored then
                claim_state, claim_number = struct.unpack('<c1d', stored)
              end
              if claim_state == 'w' and claim_number == tonumber(waiter_number) then
                claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority =
                  struct.unpack('<c1dddc1c1', stored)
              else
                claim_state = 'd'
              end
              if claim_state == 'd' or session.expires <= clock_now then
                if session.expires > 0 and session.expires <= clock_now then
                  session.expires, session.is_changed = 0, true
                end
                writes_zrem[#writes_zrem + 1] = waiter_line
                if claim_state == 'w' then
                  writes_hdel[#writes_hdel + 1] = waiter_slot_field
                end
                resource_waiting = resource_waiting - 1
              elseif resource_free < claim_count then
                queue_is_blocked = true
              else
                writes_zrem[#writes_zrem + 1] = waiter_line
                resource_free, resource_waiting = resource_free - claim_count, resource_waiting - 1
                local fence = '1'
                if claim_mode == 'c' then
                  resource_consumed = resource_consumed + claim_count
                  claim_state, claim_tick = 'g', resource_created
                else
                  clock_tick = (clock_tick or struct.unpack('<d', call('HGET', partition_state, 'clock') or
                    '\0\0\0\0\0\0\0\0')) + 1
                  if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
                    clock_tick = clock_now
                  end
                  local fence_2 = string.format('%d', clock_tick)
                  claim_state, claim_tick = 'h', clock_tick
                  if claim_mode == 'm' then
                    resource_tail = waiter_id
                  elseif claim_mode == 'k' then
                    resource_tail, resource_signalled = waiter_id, clock_tick + 1048576 - 1
                    fence_2 = fence_2 .. (resource_waiting > 0 and '/2' or '/1')
                  else
                    local line_2 = 'h' .. resource_name .. '\0' .. waiter_id
                    writes_zadd[#writes_zadd + 1] = '0'
                    writes_zadd[#writes_zadd + 1] = line_2
                  end
                  fence = fence_2
                end
                do
                  local record = pack('<c1dddc1c1', claim_state, claim_number, claim_count, claim_tick, claim_mode,
                    claim_priority) .. resource_field
                  writes_hset[#writes_hset + 1] = waiter_slot_field
                  writes_hset[#writes_hset + 1] = record
                end
                session.notices, session.is_changed = session.notices + 1, true
                writes_wakeups[waiter_sid] = (writes_wakeups[waiter_sid] and writes_wakeups[waiter_sid] .. ' ' or '') ..
                  waiter_number .. ' ' .. fence
              end
            end
            if queue_is_blocked then
              break
            end
            queue_budget = queue_budget - 1
          end
        end
      end
      local is_left_over_2 = queue_budget == 0 and resource_waiting > 0
      if is_left_over_2 then
        writes_zadd[#writes_zadd + 1] = '0'
        writes_zadd[#writes_zadd + 1] = 't' .. resource_name
      end
      is_left_over = is_left_over_2
    end
  end
  if resource_kind == 'cf' and resource_free > resource_waiting then
    resource_signalled, resource_free = resource_signalled - resource_free + resource_waiting, resource_waiting
  end
  if resource_kind then
    if resource_waiting == 0 and (resource_kind == 'cf' or resource_kind == 'pf' and resource_limit == 0 or
      (resource_kind == 'mf' or sub(resource_kind, 1, 1) == 'r') and resource_free == resource_limit) then
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
  if writes_wakeups then
    local channel = sub(partition_state, 1, -5) .. 'wake:'
    for owner, text in pairs(writes_wakeups) do
      local session = writes_sessions[owner]
      call('PUBLISH', channel .. owner, string.format('%d ', session and session.is_changed and session.notices or 0) ..
        text)
    end
  end
  reply = is_left_over and {'more', 1} or 1
end
return reply
