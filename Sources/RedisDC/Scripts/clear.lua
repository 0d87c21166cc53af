-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local partition_state, partition_index, partition_values = keys[1], keys[2], keys[4]
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created, resource_signalled, resource_field, resource_name, resource_stored, resource_tail
local call, sub = redis.call, string.sub
do
  local name = ARGV[1]
  resource_field, resource_name, resource_tail = 't:' .. name, name, ''
  resource_stored = call('HGET', partition_state, resource_field)
  if resource_stored then
    resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
      resource_limit, resource_created, resource_signalled = struct.unpack('<c2c1ddddddd', resource_stored)
    resource_tail = sub(resource_stored, 60)
    local needed = (resource_kind == 'xf' or resource_kind == 'zf') and 'x' or resource_family
    if needed ~= 'x' then
      return {'family', needed}
    end
  end
end
local writes_wakeups
local writes_hset, writes_hdel, writes_vdel, writes_zadd, writes_zrem, writes_sessions = {}, {}, {}, {}, {'t' ..
  resource_name}, {}
local is_left_over
do
  local is_done = true
  if resource_kind and resource_waiting > 0 then
    local verdict = resource_kind == 'xf' and 'gone' or 'broken'
    local lines = call('ZRANGEBYLEX', partition_index, '[q' .. resource_name .. '\0', '(q' .. resource_name .. '\1',
      'LIMIT', '0', '160')
    writes_wakeups = writes_wakeups or {}
    for i = 1, #lines do
      local line = lines[i]
      local waiter_id, waiter_sid, waiter_number, waiter_slot_field
      do
        local claim_at = #resource_name + 12
        waiter_id = sub(line, claim_at)
        local slot_id
        slot_id, waiter_sid, waiter_number = string.match(waiter_id, '^(([^:]*):[^:]*):(.*)$')
        waiter_slot_field = 'c:' .. slot_id
      end
      local stored = call('HGET', partition_state, waiter_slot_field)
      writes_zrem[#writes_zrem + 1] = line
      local claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority, claim_name_at
      if stored and sub(stored, 1, 1) == 'w' then
        claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority, claim_name_at =
          struct.unpack('<c1dddc1c1', stored)
      end
      if claim_number == tonumber(waiter_number) then
        if claim_mode == 'e' then
          local field = 'b:' .. waiter_id
          writes_vdel[#writes_vdel + 1] = field
        end
        if claim_mode == 't' then
          local note = sub(stored, claim_name_at + #resource_field)
          local line_2 = 'g' .. resource_name .. note .. '\0' .. waiter_id
          writes_zrem[#writes_zrem + 1] = line_2
        end
        do
          local record = struct.pack('<c1d', 'd', claim_number) .. verdict
          writes_hset[#writes_hset + 1] = waiter_slot_field
          writes_hset[#writes_hset + 1] = record
        end
        local session = writes_sessions[waiter_sid]
        if not session then
          session = {expires = 0}
          local stored_2 = call('HGET', partition_state, 's:' .. waiter_sid)
          if stored_2 and #stored_2 == 24 then
            session.expires, session.notices, session.slots = struct.unpack('<ddd', stored_2)
          end
          writes_sessions[waiter_sid] = session
        end
        if session.notices then
          session.notices, session.is_changed = session.notices + 1, true
        end
        writes_wakeups[waiter_sid] = (writes_wakeups[waiter_sid] and writes_wakeups[waiter_sid] .. ' ' or '') ..
          waiter_number .. ' ' .. verdict
      end
    end
    resource_waiting = #lines < 160 and 0 or math.max(0, resource_waiting - 160)
    is_done = #lines < 160
  end
  if resource_kind == 'xf' then
    for _, letter in ipairs({'d', 'v', 'u'}) do
      local has_removed_all
      do
        local lines = call('ZRANGEBYLEX', partition_index, '[' .. letter .. resource_name .. '\0', '(' .. letter ..
          resource_name .. '\1', 'LIMIT', '0', '320')
        local bytes
        bytes, has_removed_all = 0, #lines < 320
        for i = 1, #lines do
          if bytes >= 8388608 then
            has_removed_all = false
            break
          end
          do
            local line = lines[i]
            writes_zrem[#writes_zrem + 1] = line
          end
          if letter == 'v' then
            local item_field = 'v:' .. sub(lines[i], 2)
            writes_vdel[#writes_vdel + 1] = item_field
            bytes = bytes + call('HSTRLEN', partition_values, item_field)
          end
        end
      end
      is_done = is_done and has_removed_all
    end
  end
  is_left_over = resource_kind and not is_done
  if is_left_over then
    writes_zadd[#writes_zadd + 1] = '0'
    writes_zadd[#writes_zadd + 1] = 't' .. resource_name
  end
  if resource_kind == 'xf' and is_done then
    writes_hdel[#writes_hdel + 1] = resource_field
  elseif resource_kind then
    local record = struct.pack('<c2c1ddddddd', resource_kind, resource_family, resource_waiting, resource_free,
      resource_consumed, resource_permits, resource_limit, resource_created, resource_signalled) .. resource_tail
    writes_hset[#writes_hset + 1] = resource_field
    writes_hset[#writes_hset + 1] = record
  end
end
if #writes_vdel > 0 then
  call('HDEL', partition_values, unpack(writes_vdel))
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
return is_left_over and {'more', 1} or 1
