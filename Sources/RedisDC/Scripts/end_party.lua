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
  local only_waiting = arguments[5] == 'w'
  local clock_now, clock_tick
  local writes_wakeups
  local writes_hset, writes_hdel, writes_vdel, writes_zadd, writes_zrem, writes_sessions = {}, {}, {}, {}, {}, {}
  local has_freed = false
  if claim_state == 'w' then
    do
      local queue_tick, has_passed = struct.pack('>I8', claim_tick), false
      if resource_stored and resource_free > 0 and queue_tick <= resource_tail and resource_kind ~= 'xf' and
        resource_kind ~= 'zf' then
        if only_waiting then
          return {'again'}
        end
        resource_free, has_passed = resource_free - 1, true
      elseif resource_stored and resource_free > 0 and resource_kind == 'bb' then
        return {'again'}
      end
      if claim_mode == 'e' then
        local field = 'b:' .. ending_claim_id
        writes_vdel[#writes_vdel + 1] = field
      end
      do
        local line = 'q' .. resource_name .. '\0' .. claim_priority .. queue_tick .. ending_claim_id
        writes_zrem[#writes_zrem + 1] = line
      end
      if resource_stored then
        resource_waiting = resource_waiting - 1
        if resource_kind == 'bb' and not has_passed then
          resource_kind = 'zf'
          writes_zadd[#writes_zadd + 1] = '0'
          writes_zadd[#writes_zadd + 1] = 't' .. resource_name
        end
      end
    end
    has_freed = resource_stored
  elseif only_waiting then
    return {claim_tick, claim_count}
  elseif claim_state == 'h' then
    local has_freed_2 = false
    do
      local line = 'h' .. resource_name .. '\0' .. ending_claim_id
      writes_zrem[#writes_zrem + 1] = line
    end
    if claim_mode == 'r' then
      if resource_stored and resource_kind == 'pf' and claim_tick >= resource_created then
        resource_limit, has_freed_2 = resource_limit - 1, true
      end
    else
      local note = sub(ending_stored, claim_name_at + #resource_field)
      local meeting_field = 'e:' .. resource_name .. note
      local meeting = call('HGET', partition_state, meeting_field) or '\0\0\0\0\0\0\0\0'
      local unread, parties_at = unpacked('<d', meeting)
      local parties = sub(meeting, parties_at)
      if unread > 1 then
        local record = struct.pack('<d', unread - 1) .. parties
        writes_hset[#writes_hset + 1] = meeting_field
        writes_hset[#writes_hset + 1] = record
      else
        writes_hdel[#writes_hdel + 1] = meeting_field
        for party in string.gmatch(parties, '%S+') do
          local field = 'b:' .. party
          writes_vdel[#writes_vdel + 1] = field
        end
      end
    end
    has_freed = has_freed_2
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
    local round_tick_at, round_claim_at, round_meeting, round_parties
    local round_budget, round_is_left_over = 128, false
    if resource_kind and resource_kind ~= 'xf' and resource_kind ~= 'zf' then
      round_tick_at, round_claim_at = #resource_name + 4, #resource_name + 12
      if not clock_now then
        local time = call('TIME')
        clock_now = time[1] * 1000000 + time[2]
      end
      if resource_free == 0 and resource_limit > 0 and resource_waiting >= resource_limit then
        local lines = call('ZRANGEBYLEX', partition_index, '[q' .. resource_name .. '\0', '(q' .. resource_name .. '\1',
          'LIMIT', '0', '1536')
        local living, last, dead
        do
          local leaving = writes_zrem[1]
          living, last, dead = 0, nil, {}
          for i = 1, #lines do
            if lines[i] ~= leaving then
              local claim_id = sub(lines[i], round_claim_at)
              local sid = sub(claim_id, 1, string.find(claim_id, ':', 1, true) - 1)
              local session = writes_sessions[sid]
              if not session then
                session = {expires = 0}
                local stored = call('HGET', partition_state, 's:' .. sid)
                if stored and #stored == 24 then
                  session.expires, session.notices, session.slots = unpacked('<ddd', stored)
                end
                writes_sessions[sid] = session
              end
              if session.expires > 0 and session.expires <= clock_now then
                session.expires, session.is_changed = 0, true
              end
              if session.expires > 0 then
                living, last = living + 1, lines[i]
                if living == resource_limit then
                  break
                end
              else
                dead[#dead + 1] = lines[i]
                if #dead == 256 then
                  break
                end
              end
            end
          end
        end
        if #dead > 0 and resource_kind == 'bb' then
          resource_kind, round_is_left_over = 'zf', true
        else
          for i = 1, #dead do
            local claim_id = sub(dead[i], round_claim_at)
            do
              local line = dead[i]
              writes_zrem[#writes_zrem + 1] = line
            end
            do
              local field = 'c:' .. string.match(claim_id, '^(.*):%d+$')
              writes_hdel[#writes_hdel + 1] = field
            end
            if resource_kind == 'eo' then
              local field = 'b:' .. claim_id
              writes_vdel[#writes_vdel + 1] = field
            end
          end
          resource_waiting = resource_waiting - #dead
          if living == resource_limit then
            resource_free, resource_signalled = resource_limit, resource_signalled + 1
            resource_tail = sub(last, round_tick_at, round_tick_at + 7) .. struct.pack('<d', resource_limit)
            if #lines > 256 then
              round_budget = 0
            end
          elseif #lines == 1536 or #dead == 256 then
            round_is_left_over = true
          end
        end
      end
      if resource_free > 0 and resource_kind ~= 'zf' then
        local removed = {}
        for i = 1, #writes_zrem do
          removed[writes_zrem[i]] = true
        end
        local lines = call('ZRANGEBYLEX', partition_index, '[q' .. resource_name .. '\0', '(q' .. resource_name .. '\1',
          'LIMIT', '0', #writes_zrem + round_budget)
        writes_wakeups = writes_wakeups or {}
        for i = 1, #lines do
          if resource_free == 0 or round_budget == 0 or sub(lines[i], round_tick_at, round_tick_at + 7) > resource_tail
            then
            break
          end
          if not removed[lines[i]] then
            local line = lines[i]
            local party_id, party_sid, party_number, party_slot_field
            do
              party_id = sub(line, round_claim_at)
              local slot_id
              slot_id, party_sid, party_number = string.match(party_id, '^(([^:]*):[^:]*):(.*)$')
              party_slot_field = 'c:' .. slot_id
            end
            local session = writes_sessions[party_sid]
            if not session then
              session = {expires = 0}
              local stored = call('HGET', partition_state, 's:' .. party_sid)
              if stored and #stored == 24 then
                session.expires, session.notices, session.slots = unpacked('<ddd', stored)
              end
              writes_sessions[party_sid] = session
            end
            local stored = call('HGET', partition_state, party_slot_field)
            local claim_state_2, claim_count_2, claim_tick_2, claim_mode_2, claim_priority_2
            local claim_number_2 = 0
            if stored and sub(stored, 1, 1) == 'w' then
              claim_state_2, claim_number_2, claim_count_2, claim_tick_2, claim_mode_2, claim_priority_2 =
                unpacked('<c1dddc1c1', stored)
            end
            writes_zrem[#writes_zrem + 1] = line
            resource_waiting, round_budget = resource_waiting - 1, round_budget - 1
            local arrival = (resource_signalled - 1) * 1024 + unpacked('<d', resource_tail, 9) - resource_free
            resource_free = resource_free - 1
            if claim_number_2 ~= tonumber(party_number) or session.expires <= clock_now then
              if session.expires > 0 and session.expires <= clock_now then
                session.expires, session.is_changed = 0, true
              end
              if claim_state_2 == 'w' and claim_number_2 == tonumber(party_number) then
                writes_hdel[#writes_hdel + 1] = party_slot_field
                if claim_mode_2 == 'e' then
                  local field = 'b:' .. party_id
                  writes_vdel[#writes_vdel + 1] = field
                end
              end
            else
              local fence
              do
                local note
                fence, note = '1', ''
                if claim_mode_2 == 'e' then
                  if not round_meeting then
                    clock_tick = (clock_tick or unpacked('<d', call('HGET', partition_state, 'clock') or
                      '\0\0\0\0\0\0\0\0')) + 1
                    if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
                      clock_tick = clock_now
                    end
                    round_meeting, round_parties = struct.pack('>I8', clock_tick), {}
                  end
                  clock_tick = clock_tick + 1
                  round_parties[#round_parties + 1] = party_id
                  claim_state_2, claim_tick_2 = 'h', clock_tick
                  do
                    local line_2 = 'h' .. resource_name .. '\0' .. party_id
                    writes_zadd[#writes_zadd + 1] = '0'
                    writes_zadd[#writes_zadd + 1] = line_2
                  end
                  fence, note = string.format('%d', clock_tick), '\0' .. round_meeting
                else
                  claim_state_2, claim_tick_2 = 'g', resource_created
                end
                claim_count_2 = arrival
                local record = struct.pack('<c1dddc1c1', claim_state_2, claim_number_2, claim_count_2, claim_tick_2,
                  claim_mode_2, claim_priority_2) .. resource_field .. note
                writes_hset[#writes_hset + 1] = party_slot_field
                writes_hset[#writes_hset + 1] = record
              end
              if party_slot_field == nil then
              else
                session.notices, session.is_changed = session.notices + 1, true
                local word = fence .. '/' .. string.format('%d', arrival)
                writes_wakeups[party_sid] = (writes_wakeups[party_sid] and writes_wakeups[party_sid] .. ' ' or '') ..
                  party_number .. ' ' .. word
              end
            end
          end
        end
        if round_budget > 0 and resource_free > 0 then
          resource_free = 0
        end
        if round_meeting then
          local field = 'e:' .. resource_name .. '\0' .. round_meeting
          local record = struct.pack('<d', #round_parties) .. table.concat(round_parties, ' ')
          writes_hset[#writes_hset + 1] = field
          writes_hset[#writes_hset + 1] = record
        end
        round_is_left_over = resource_free > 0 or resource_limit > 0 and resource_waiting >= resource_limit
      end
    end
    if round_is_left_over then
      writes_zadd[#writes_zadd + 1] = '0'
      writes_zadd[#writes_zadd + 1] = 't' .. resource_name
    end
    is_left_over = round_is_left_over
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
