-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local partition_state, partition_index, partition_values = keys[1], keys[2], keys[4]
local clock_now, clock_tick
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created, resource_signalled, resource_field, resource_name, resource_stored, resource_tail
local call = redis.call
do
  local name = ARGV[1]
  resource_field, resource_name, resource_tail = 't:' .. name, name, ''
  resource_stored = call('HGET', partition_state, resource_field)
  if resource_stored then
    resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
      resource_limit, resource_created, resource_signalled = struct.unpack('<c2c1ddddddd', resource_stored)
    resource_tail = string.sub(resource_stored, 60)
    local needed = (resource_kind == 'xf' or resource_kind == 'zf') and 'x' or resource_family
    if needed ~= 'm' then
      return {'family', needed}
    end
  end
end
local writes_wakeups
local writes_hset, writes_hdel, writes_vdel, writes_zadd, writes_zrem, writes_sessions = {}, {}, {}, {}, {'t' ..
  resource_name}, {}
local is_left_over
do
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
            local claim_id = string.sub(lines[i], round_claim_at)
            local sid = string.sub(claim_id, 1, string.find(claim_id, ':', 1, true) - 1)
            local session = writes_sessions[sid]
            if not session then
              session = {expires = 0}
              local stored = call('HGET', partition_state, 's:' .. sid)
              if stored and #stored == 24 then
                session.expires, session.notices, session.slots = struct.unpack('<ddd', stored)
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
        local sub = string.sub
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
      local sub = string.sub
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
              session.expires, session.notices, session.slots = struct.unpack('<ddd', stored)
            end
            writes_sessions[party_sid] = session
          end
          local stored = call('HGET', partition_state, party_slot_field)
          local claim_state, claim_count, claim_tick, claim_mode, claim_priority
          local claim_number = 0
          if stored and sub(stored, 1, 1) == 'w' then
            claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority = struct.unpack('<c1dddc1c1',
              stored)
          end
          writes_zrem[#writes_zrem + 1] = line
          resource_waiting, round_budget = resource_waiting - 1, round_budget - 1
          local arrival = (resource_signalled - 1) * 1024 + struct.unpack('<d', resource_tail, 9) - resource_free
          resource_free = resource_free - 1
          if claim_number ~= tonumber(party_number) or session.expires <= clock_now then
            if session.expires > 0 and session.expires <= clock_now then
              session.expires, session.is_changed = 0, true
            end
            if claim_state == 'w' and claim_number == tonumber(party_number) then
              writes_hdel[#writes_hdel + 1] = party_slot_field
              if claim_mode == 'e' then
                local field = 'b:' .. party_id
                writes_vdel[#writes_vdel + 1] = field
              end
            end
          else
            local fence
            do
              local note
              fence, note = '1', ''
              if claim_mode == 'e' then
                if not round_meeting then
                  clock_tick = (clock_tick or struct.unpack('<d', call('HGET', partition_state, 'clock') or
                    '\0\0\0\0\0\0\0\0')) + 1
                  if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then
                    clock_tick = clock_now
                  end
                  round_meeting, round_parties = struct.pack('>I8', clock_tick), {}
                end
                clock_tick = clock_tick + 1
                round_parties[#round_parties + 1] = party_id
                claim_state, claim_tick = 'h', clock_tick
                do
                  local line_2 = 'h' .. resource_name .. '\0' .. party_id
                  writes_zadd[#writes_zadd + 1] = '0'
                  writes_zadd[#writes_zadd + 1] = line_2
                end
                fence, note = string.format('%d', clock_tick), '\0' .. round_meeting
              else
                claim_state, claim_tick = 'g', resource_created
              end
              claim_count = arrival
              local record = struct.pack('<c1dddc1c1', claim_state, claim_number, claim_count, claim_tick, claim_mode,
                claim_priority) .. resource_field .. note
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
if #writes_vdel > 0 then
  call('HDEL', partition_values, unpack(writes_vdel))
end
if resource_kind == 'cf' and resource_free > resource_waiting then
  resource_signalled, resource_free = resource_signalled - resource_free + resource_waiting, resource_waiting
end
if resource_kind then
  if resource_waiting == 0 and (resource_kind == 'cf' or resource_kind == 'pf' and resource_limit == 0 or (resource_kind
    == 'mf' or string.sub(resource_kind, 1, 1) == 'r') and resource_free == resource_limit) then
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
  local channel = string.sub(partition_state, 1, -5) .. 'wake:'
  for owner, text in pairs(writes_wakeups) do
    local session = writes_sessions[owner]
    call('PUBLISH', channel .. owner, string.format('%d ', session and session.is_changed and session.notices or 0) ..
      text)
  end
end
return is_left_over and {'more', 1} or 1
