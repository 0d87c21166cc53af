-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local partition_state, partition_index, partition_values = keys[1], keys[2], keys[4]
local ending_sid, ending_stored, ending_is_named, ending_ended_slot, ending_by_other, ending_word, ending_session
local arguments, sub = ARGV, string.sub
local ending_slot_field, ending_claim_number, ending_claim_id = arguments[1], tonumber(arguments[4]), sub(arguments[1],
  3) .. ':' .. arguments[4]
local claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority, claim_name_at
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created, resource_signalled, resource_field, resource_name, resource_stored
local resource_tail = ''
local call, unpacked = redis.call, struct.unpack
do
  resource_field, resource_name, ending_word = arguments[3], sub(arguments[3], 3), arguments[2]
  ending_sid = string.match(ending_claim_id, '^[^:]+')
  local stored = call('HMGET', partition_state, ending_slot_field, resource_field, 's:' .. ending_sid)
  ending_stored, resource_stored, ending_session = stored[1], stored[2], stored[3]
  if resource_stored then
    resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
      resource_limit, resource_created, resource_signalled = unpacked('<c2c1ddddddd', resource_stored)
    resource_tail = sub(resource_stored, 60)
  end
  if ending_word == '' and ending_session and #ending_session == 24 and unpacked('<d', ending_session) > 0 then
    return {'alive'}
  end
  claim_state, claim_number = 'd', 0
  if ending_stored then
    claim_state, claim_number = unpacked('<c1d', ending_stored)
  end
  local slot_mode = claim_state == 'h' and sub(ending_stored, 26, 26)
  ending_is_named = (slot_mode == 'm' or slot_mode == 'k') and resource_family ~= 'g'
  if ending_is_named and resource_tail ~= ending_claim_id then
    claim_state = 'd'
    call('ZREM', partition_index, 'h' .. resource_name .. '\0' .. ending_claim_id)
  end
  if claim_number ~= ending_claim_number or claim_state == 'd' then
    if claim_number == ending_claim_number and ending_word == '' then
      call('HDEL', partition_state, ending_slot_field)
    end
    return 0
  end
  claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority, claim_name_at = unpacked('<c1dddc1c1',
    ending_stored)
  ending_by_other = true
  if ending_word ~= '' then
    ending_ended_slot = struct.pack('<c1d', 'd', claim_number) .. ending_word
  end
end
local reply
do
  if claim_state == 'w' then
    return {'family', 'p'}
  end
  local clock_now, clock_tick
  local writes_wakeups
  local writes_hset, writes_hdel, writes_vdel, writes_zadd, writes_zrem, writes_sessions = {}, {}, {}, {}, {'h' ..
    resource_name .. '\0' .. ending_claim_id}, {}
  local has_freed = false
  local item_key = resource_name .. sub(ending_stored, claim_name_at + #resource_field)
  if resource_stored and claim_tick >= resource_created and resource_kind == 'if' then
    resource_free, has_freed = resource_free + claim_count, true
    if claim_mode == 'i' then
      local line = 'v' .. item_key
      writes_zadd[#writes_zadd + 1] = '0'
      writes_zadd[#writes_zadd + 1] = line
    end
  elseif claim_mode == 'i' then
    writes_vdel[1] = 'v:' .. item_key
  end
  if ending_ended_slot then
    writes_hset[#writes_hset + 1] = ending_slot_field
    writes_hset[#writes_hset + 1] = ending_ended_slot
    if ending_by_other then
      writes_wakeups = {[ending_sid] = string.format('%d', ending_claim_number) .. ' ' .. ending_word}
      if ending_session and #ending_session == 24 then
        local session_expires, session_notices, session_slots = unpacked('<ddd', ending_session)
        writes_sessions[ending_sid] = {expires = session_expires, notices = session_notices + 1, slots = session_slots,
          is_changed = true}
      end
    end
  else
    writes_hdel[#writes_hdel + 1] = ending_slot_field
  end
  local is_left_over = false
  if has_freed then
    local is_left_over_2 = false
    if resource_kind and resource_waiting > 0 and resource_free > 0 and resource_kind ~= 'xf' and resource_kind ~= 'zf'
      then
      writes_wakeups = writes_wakeups or {}
      if resource_kind == 'sb' then
        local name = resource_name
        local lines = call('ZRANGEBYLEX', partition_index, '[q' .. name .. '\0', '(q' .. name .. '\1', 'LIMIT', '0',
          '2')
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
        local queue_from, queue_to, queue_claim_at, queue_offset, queue_removed, queue_budget, queue_is_blocked = '[q'
          .. name .. '\0', '(q' .. name .. '\1', #name + 12, 0, writes_zrem[1], 128, false
        while resource_waiting > 0 and resource_free > 0 and queue_budget > 0 and not queue_is_blocked do
          local lines = call('ZRANGEBYLEX', partition_index, queue_from, queue_to, 'LIMIT', queue_offset, queue_offset
            == 0 and '1' or '32')
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
                    session.expires, session.notices, session.slots = unpacked('<ddd', records[2])
                  end
                  writes_sessions[waiter_sid] = session
                end
                local claim_count_2, claim_tick_2, claim_mode_2, claim_priority_2
                local claim_state_2, claim_number_2 = 'd', 0
                if stored then
                  claim_state_2, claim_number_2 = unpacked('<c1d', stored)
                end
                if claim_state_2 == 'w' and claim_number_2 == tonumber(waiter_number) then
                  claim_state_2, claim_number_2, claim_count_2, claim_tick_2, claim_mode_2, claim_priority_2 =
                    unpacked('<c1dddc1c1', stored)
                else
                  claim_state_2 = 'd'
                end
                if claim_state_2 == 'd' or session.expires <= clock_now then
                  if session.expires > 0 and session.expires <= clock_now then
                    session.expires, session.is_changed = 0, true
                  end
                  writes_zrem[#writes_zrem + 1] = waiter_line
                  if claim_state_2 == 'w' then
                    writes_hdel[#writes_hdel + 1] = waiter_slot_field
                  end
                  resource_waiting = resource_waiting - 1
                elseif resource_free < claim_count_2 then
                  queue_is_blocked = true
                else
                  writes_zrem[#writes_zrem + 1] = waiter_line
                  resource_free, resource_waiting = resource_free - claim_count_2, resource_waiting - 1
                  local fence = '1'
                  if claim_mode_2 == 'c' then
                    resource_consumed = resource_consumed + claim_count_2
                    claim_state_2, claim_tick_2 = 'g', resource_created
                  else
                    clock_tick = (clock_tick or unpacked('<d', call('HGET', partition_state, 'clock') or
                      '\0\0\0\0\0\0\0\0')) + 1
                    if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
                      clock_tick = clock_now
                    end
                    local fence_2 = string.format('%d', clock_tick)
                    claim_state_2, claim_tick_2 = 'h', clock_tick
                    if claim_mode_2 == 'm' then
                      resource_tail = waiter_id
                    elseif claim_mode_2 == 'k' then
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
                    local record = struct.pack('<c1dddc1c1', claim_state_2, claim_number_2, claim_count_2, claim_tick_2,
                      claim_mode_2, claim_priority_2) .. resource_field
                    writes_hset[#writes_hset + 1] = waiter_slot_field
                    writes_hset[#writes_hset + 1] = record
                  end
                  session.notices, session.is_changed = session.notices + 1, true
                  writes_wakeups[waiter_sid] = (writes_wakeups[waiter_sid] and writes_wakeups[waiter_sid] .. ' ' or '')
                    .. waiter_number .. ' ' .. fence
                end
              end
              if queue_is_blocked then
                break
              end
              queue_budget = queue_budget - 1
            end
          end
        end
        local is_left_over_3 = queue_budget == 0 and resource_waiting > 0
        if is_left_over_3 then
          writes_zadd[#writes_zadd + 1] = '0'
          writes_zadd[#writes_zadd + 1] = 't' .. resource_name
        end
        is_left_over_2 = is_left_over_3
      end
    end
    is_left_over = is_left_over_2
  end
  reply = (is_left_over or resource_kind == 'zf' and resource_waiting > 0) and {'more', 1} or 1
  if #writes_vdel > 0 then
    call('HDEL', partition_values, unpack(writes_vdel))
  end
  if resource_kind == 'cf' and resource_free > resource_waiting then
    resource_signalled, resource_free = resource_signalled - resource_free + resource_waiting, resource_waiting
  end
  if resource_kind then
    if resource_waiting == 0 and (resource_kind == 'cf' or resource_kind == 'pf' and resource_limit == 0 or
      (resource_kind == 'mf' or sub(resource_kind, 1, 1) == 'r') and resource_free == resource_limit) then
      writes_hdel[#writes_hdel + 1] = resource_field
    else
      local record = struct.pack('<c2c1ddddddd', resource_kind, resource_family, resource_waiting, resource_free,
        resource_consumed, resource_permits, resource_limit, resource_created, resource_signalled) .. resource_tail
      writes_hset[#writes_hset + 1] = resource_field
      writes_hset[#writes_hset + 1] = record
    end
  end
  if clock_tick then
    local record = struct.pack('<d', clock_tick)
    writes_hset[#writes_hset + 1] = 'clock'
    writes_hset[#writes_hset + 1] = record
  end
  for sid, session in pairs(writes_sessions) do
    if session.is_changed then
      local field = 's:' .. sid
      local record = struct.pack('<ddd', session.expires, session.notices, session.slots)
      writes_hset[#writes_hset + 1] = field
      writes_hset[#writes_hset + 1] = record
    end
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
end
return reply
