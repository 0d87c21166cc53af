-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state, partition_index = KEYS[1], KEYS[2]
local ending_stored, ending_is_named, ending_ended_slot
local arguments, sub = ARGV, string.sub
local ending_slot_field, ending_claim_number, ending_claim_id = arguments[1], tonumber(arguments[4]), sub(arguments[1],
  3) .. ':' .. arguments[4]
local claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority, claim_name_at
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created, resource_signalled, resource_field, resource_name, resource_stored
local resource_tail = ''
local call, pack = redis.call, struct.pack
do
  local number = tonumber(arguments[2])
  resource_field, resource_name = arguments[3], sub(arguments[3], 3)
  local stored = call('HMGET', partition_state, ending_slot_field, resource_field)
  ending_stored, resource_stored = stored[1], stored[2]
  if resource_stored then
    resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
      resource_limit, resource_created, resource_signalled = struct.unpack('<c2c1ddddddd', resource_stored)
    resource_tail = sub(resource_stored, 60)
  end
  claim_state, claim_number = 'd', 0
  if ending_stored then
    claim_state, claim_number = struct.unpack('<c1d', ending_stored)
  end
  local slot_mode = claim_state == 'h' and sub(ending_stored, 26, 26)
  local is_sole = slot_mode == 'm' or slot_mode == 'k'
  ending_is_named = is_sole and resource_family ~= 'g'
  if ending_is_named and claim_number == ending_claim_number and resource_tail ~= ending_claim_id then
    claim_state = 'd'
    call('ZREM', partition_index, 'h' .. resource_name .. '\0' .. ending_claim_id)
  end
  if claim_number ~= ending_claim_number or claim_state == 'd' then
    local is_free = claim_state == 'd' or claim_state == 'g' or claim_number == ending_claim_number
    if is_sole and not is_free then
      local older_id = sub(ending_slot_field, 3) .. ':' .. string.format('%d', claim_number)
      local older = call('HGET', partition_state, sub(ending_stored, 28))
      is_free = not older or sub(older, 60) ~= older_id and not call('ZSCORE', partition_index, 'h' ..
        sub(ending_stored, 30) .. '\0' .. older_id)
    end
    if number > claim_number and is_free then
      if not ending_stored then
        local session_field = 's:' .. string.match(ending_claim_id, '^[^:]+')
        local stored_2 = call('HGET', partition_state, session_field)
        if not stored_2 or #stored_2 ~= 24 then
          return {'lost'}
        end
        local session_expires, session_notices, session_slots = struct.unpack('<ddd', stored_2)
        local slots_used = string.match(ending_slot_field, '%d+$') + 1
        session_slots = math.max(session_slots, slots_used)
        call('HDEL', partition_state, '')
        call('HSET', partition_state, session_field, pack('<ddd', session_expires, session_notices, session_slots))
      end
      call('HDEL', partition_state, '')
      call('HSET', partition_state, ending_slot_field, pack('<c1d', 'd', number))
    end
    return 0
  end
  claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority, claim_name_at =
    struct.unpack('<c1dddc1c1', ending_stored)
  ending_ended_slot = pack('<c1d', 'd', number)
end
local reply
do
  if resource_family == 'p' and claim_mode ~= 't' then
    return {'family', resource_family}
  end
  local clock_now, clock_tick
  local note = sub(ending_stored, claim_name_at + #resource_field)
  local writes_wakeups
  local writes_hset, writes_hdel, writes_zadd, writes_zrem, writes_sessions = {}, {}, {}, {}, {}
  local has_freed = false
  if claim_state == 'w' then
    do
      local line = 'q' .. resource_name .. '\0' .. claim_priority .. pack('>I8', claim_tick) .. ending_claim_id
      writes_zrem[#writes_zrem + 1] = line
    end
    if claim_mode == 't' then
      local line = 'g' .. resource_name .. note .. '\0' .. ending_claim_id
      writes_zrem[#writes_zrem + 1] = line
    end
    if resource_stored then
      resource_waiting, has_freed = resource_waiting - 1, true
    end
  else
    local is_current, released = resource_stored and claim_tick >= resource_created, claim_count
    if claim_state == 'h' then
      local is_removed = call('ZREM', partition_index, 'h' .. resource_name .. '\0' .. ending_claim_id)
      if is_removed == 0 then
        is_current = false
      end
    end
    if claim_state == 'g' and is_current then
      resource_consumed = resource_consumed - claim_count
    end
    if claim_mode == 't' then
      local released_2 = claim_count
      local group_field = 'g:' .. resource_name .. note
      local stored = call('HGET', partition_state, group_field)
      local group_members, group_created = 0, claim_tick + 1
      if stored then
        group_members, group_created = struct.unpack('<dd', stored)
      end
      if group_created <= claim_tick and group_members > 1 then
        group_members = group_members - 1
        local record = pack('<dd', group_members, group_created)
        writes_hset[#writes_hset + 1] = group_field
        writes_hset[#writes_hset + 1] = record
      elseif group_created <= claim_tick then
        writes_hdel[#writes_hdel + 1] = group_field
        released_2 = 1
      end
      released = released_2
    end
    if is_current then
      resource_free = resource_free + released
    end
    has_freed = is_current
  end
  if ending_ended_slot then
    writes_hset[#writes_hset + 1] = ending_slot_field
    writes_hset[#writes_hset + 1] = ending_ended_slot
  else
    writes_hdel[#writes_hdel + 1] = ending_slot_field
  end
  local is_left_over = false
  if has_freed then
    local admission_claim_at, admission_members, admission_removed
    local admission_group, admission_group_offset, admission_queue_offset, admission_is_blocked, admission_budget = nil,
      0, 0, false, 96
    local has_more_groups, is_left_over_2 = false, false
    if resource_kind and resource_kind ~= 'xf' and resource_kind ~= 'zf' and resource_waiting > 0 and (resource_free > 0
      or admission_group) then
      admission_claim_at = #resource_name + 12
      writes_wakeups = writes_wakeups or {}
      if not clock_now then
        local time = call('TIME')
        clock_now = time[1] * 1000000 + time[2]
      end
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
        admission_members, admission_removed = {}, {}
        for i = 1, #writes_zrem do
          admission_removed[writes_zrem[i]] = true
        end
        while resource_waiting > 0 and admission_budget > 0 and (admission_group or not admission_is_blocked and
          resource_free > 0) do
          local group, lines, claim_at = admission_group, nil, admission_claim_at
          if group then
            local prefix = 'g' .. resource_name .. '\0' .. admission_group
            local lines_2 = call('ZRANGEBYLEX', partition_index, '[' .. prefix .. '\0', '(' .. prefix .. '\1', 'LIMIT',
              admission_group_offset, '32')
            admission_group_offset = admission_group_offset + #lines_2
            if #lines_2 == 0 then
              admission_group, admission_group_offset = nil, 0
            end
            lines, claim_at = lines_2, #prefix + 2
          else
            local lines_2 = call('ZRANGEBYLEX', partition_index, '[q' .. resource_name .. '\0', '(q' .. resource_name ..
              '\1', 'LIMIT', admission_queue_offset, admission_queue_offset == 0 and '1' or '32')
            admission_queue_offset = admission_queue_offset + #lines_2
            if #lines_2 == 0 then
              resource_waiting = 0
            end
            lines = lines_2
          end
          for i = 1, #lines do
            if admission_budget == 0 or resource_free <= 0 and not group then
              break
            end
            if admission_group ~= group then
              admission_queue_offset = admission_queue_offset - #lines + i - 1
              break
            end
            if not admission_removed[lines[i]] then
              local is_blocked
              do
                local line = lines[i]
                local waiter_line, waiter_id, waiter_sid, waiter_number, waiter_slot_field, waiter_is_waiting,
                  waiter_note, waiter_other_line
                do
                  waiter_line, waiter_id = line, sub(line, claim_at)
                  local slot_id
                  slot_id, waiter_sid, waiter_number = string.match(waiter_id, '^(([^:]*):[^:]*):(.*)$')
                  waiter_slot_field = 'c:' .. slot_id
                end
                waiter_is_waiting, waiter_note = false, ''
                local session = writes_sessions[waiter_sid]
                if not session then
                  session = {expires = 0}
                  local stored = call('HGET', partition_state, 's:' .. waiter_sid)
                  if stored and #stored == 24 then
                    session.expires, session.notices, session.slots = struct.unpack('<ddd', stored)
                  end
                  writes_sessions[waiter_sid] = session
                end
                local stored = call('HGET', partition_state, waiter_slot_field)
                local claim_state_2, claim_number_2, claim_count_2, claim_tick_2, claim_mode_2, claim_priority_2,
                  claim_name_at_2
                if stored and sub(stored, 1, 1) == 'w' then
                  claim_state_2, claim_number_2, claim_count_2, claim_tick_2, claim_mode_2, claim_priority_2,
                    claim_name_at_2 = struct.unpack('<c1dddc1c1', stored)
                  waiter_is_waiting = claim_number_2 == tonumber(waiter_number)
                end
                if waiter_is_waiting and claim_mode_2 == 't' then
                  waiter_note = sub(stored, claim_name_at_2 + #resource_field)
                  if group then
                    waiter_other_line = 'q' .. resource_name .. '\0' .. claim_priority_2 .. pack('>I8', claim_tick_2) ..
                      waiter_id
                  else
                    waiter_other_line = 'g' .. resource_name .. waiter_note .. '\0' .. waiter_id
                  end
                  admission_removed[waiter_other_line] = true
                  if not admission_members[waiter_note] then
                    local members
                    do
                      members = 0
                      local stored_2 = call('HGET', partition_state, 'g:' .. resource_name .. waiter_note)
                      if stored_2 then
                        local group_members, group_created = struct.unpack('<dd', stored_2)
                        if group_created == resource_created then
                          members = group_members
                        end
                      end
                    end
                    admission_members[waiter_note] = members
                  end
                  if admission_members[waiter_note] > 0 then
                    claim_count_2 = 0
                  end
                end
                is_blocked = false
                if not waiter_is_waiting or session.expires <= clock_now then
                  if session.expires > 0 and session.expires <= clock_now then
                    session.expires, session.is_changed = 0, true
                  end
                  writes_zrem[#writes_zrem + 1] = line
                  writes_zrem[#writes_zrem + 1] = waiter_other_line
                  if waiter_is_waiting then
                    writes_hdel[#writes_hdel + 1] = waiter_slot_field
                  end
                  resource_waiting = resource_waiting - 1
                elseif resource_free < claim_count_2 then
                  is_blocked = true
                  if waiter_other_line then
                    admission_removed[waiter_other_line] = nil
                  end
                else
                  clock_tick = (clock_tick or struct.unpack('<d', call('HGET', partition_state, 'clock') or
                    '\0\0\0\0\0\0\0\0')) + 1
                  if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
                    clock_tick = clock_now
                  end
                  resource_free, resource_waiting = resource_free - claim_count_2, resource_waiting - 1
                  writes_zrem[#writes_zrem + 1] = waiter_line
                  writes_zrem[#writes_zrem + 1] = waiter_other_line
                  claim_state_2, claim_tick_2 = 'h', clock_tick
                  if claim_mode_2 == 'c' then
                    claim_state_2, resource_consumed = 'g', resource_consumed + claim_count_2
                  else
                    local line_2 = 'h' .. resource_name .. '\0' .. waiter_id
                    writes_zadd[#writes_zadd + 1] = '0'
                    writes_zadd[#writes_zadd + 1] = line_2
                  end
                  if claim_mode_2 == 't' then
                    claim_count_2, admission_members[waiter_note] = 0, admission_members[waiter_note] + 1
                    if admission_members[waiter_note] == 1 then
                      admission_group = sub(waiter_note, 2)
                    end
                  end
                  do
                    local record = pack('<c1dddc1c1', claim_state_2, claim_number_2, claim_count_2, claim_tick_2,
                      claim_mode_2, claim_priority_2) .. resource_field .. waiter_note
                    writes_hset[#writes_hset + 1] = waiter_slot_field
                    writes_hset[#writes_hset + 1] = record
                  end
                  session.notices, session.is_changed = session.notices + 1, true
                  local word = string.format('%d', clock_tick)
                  writes_wakeups[waiter_sid] = (writes_wakeups[waiter_sid] and writes_wakeups[waiter_sid] .. ' ' or '')
                    .. waiter_number .. ' ' .. word
                end
              end
              if is_blocked then
                admission_is_blocked = true
                break
              end
              admission_budget = admission_budget - 1
            end
          end
        end
        for note_2, count in pairs(admission_members) do
          if count > 0 then
            local field = 'g:' .. resource_name .. note_2
            local record = pack('<dd', count, resource_created)
            writes_hset[#writes_hset + 1] = field
            writes_hset[#writes_hset + 1] = record
          end
        end
        if admission_group and resource_waiting > 0 then
          local line = 'u' .. resource_name .. '\0' .. admission_group
          writes_zadd[#writes_zadd + 1] = '0'
          writes_zadd[#writes_zadd + 1] = line
        end
        local is_left_over_3 = admission_budget == 0 and resource_waiting > 0
        if is_left_over_3 then
          writes_zadd[#writes_zadd + 1] = '0'
          writes_zadd[#writes_zadd + 1] = 't' .. resource_name
        end
        is_left_over_2 = is_left_over_3
      end
    end
    is_left_over = is_left_over_2 or has_more_groups
  end
  reply = (is_left_over or resource_kind == 'zf' and resource_waiting > 0) and {'more', 1} or 1
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
