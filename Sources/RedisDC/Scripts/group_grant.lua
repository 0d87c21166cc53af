-- Grants permits to waiters and to groups: first come, first served, but when a member gets the permit of its group,
-- all other members that wait enter with it.
--
-- grants_wanted: see grant.lua
-- A member of a group waits in two lines, so fewer are granted at a time than in grant.lua.
local budget = 96
-- The group that has entered, and whose waiters enter now without a permit.
local entering_group
if grants_wanted == 'again' and kind then
  local from, to = '[' .. ENTERING_LINE .. name .. '\0', '(' .. ENTERING_LINE .. name .. '\1'
  local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '2')
  if #lines > 0 then
    -- The group's name follows ENTERING_LINE, the resource's name and a zero byte.
    local group_name = string.sub(lines[1], #name + 3)
    local group = call('HGET', state, GROUP_FIELD .. name .. '\0' .. group_name)
    local _, group_created = 0, nil
    if group then _, group_created = decode(GROUP, group) end
    if group_created == created then entering_group = group_name end
    zrem[#zrem + 1] = lines[1]
  end
  if #lines == 2 then
    zadd[#zadd + 1] = '0'
    zadd[#zadd + 1] = RECHECK_LINE .. name
    reply = {'more', reply}
  end
end
if grants_wanted and kind and kind ~= DESTROYED and kind ~= BROKEN and waiting > 0 and (free > 0 or entering_group) then
  local from, to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
  local claim_at = #name + 12
  wakeups = wakeups or {}
  if not now then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  if kind == OVERTAKING_SEMAPHORE and grants_wanted ~= 'again' then
    local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '2')
    local line = lines[1] ~= zrem[1] and lines[1] or lines[2]
    if line then
      local owner, _, waiter_number = string.match(string.sub(line, claim_at), '^(%w+):(%d+):(%d+)$')
      wakeups[owner] = (wakeups[owner] and wakeups[owner] .. ' ' or '') .. waiter_number .. ' try'
      zadd[#zadd + 1] = '0'
      zadd[#zadd + 1] = RECHECK_LINE .. name
    end
  else
    -- The place at which the queue is read. is_blocked: its first waiter wants more than is free.
    local queue_offset, is_blocked = 0, false
    -- Members that have entered, by the note of their group, and where the waiters of the entering group are read.
    local members, group_offset = {}, 0
    -- Lines that write.lua removes, which are still in the index.
    local removed = {}
    for i = 1, #zrem do removed[zrem[i]] = true end
    while waiting > 0 and budget > 0 and (entering_group or not is_blocked and free > 0) do
      local lines, id_at
      local group = entering_group
      if group then
        local prefix = MEMBER_LINE .. name .. '\0' .. group
        lines = call('ZRANGEBYLEX', index, '[' .. prefix .. '\0', '(' .. prefix .. '\1', 'LIMIT', group_offset, '32')
        group_offset, id_at = group_offset + #lines, #prefix + 2
        if #lines == 0 then entering_group, group_offset = nil, 0 end
      else
        lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', queue_offset, queue_offset == 0 and '1' or '32')
        queue_offset, id_at = queue_offset + #lines, claim_at
        -- The index lacks waiters that the record counts: someone has changed it.
        if #lines == 0 then waiting = 0 end
      end
      for i = 1, #lines do
        local line = lines[i]
        if budget == 0 or free <= 0 and not group then break end
        if entering_group ~= group then
          -- A group has entered with the grant before this line. Afterwards the queue continues at this line.
          queue_offset = queue_offset - #lines + i - 1
          break
        end
        if not removed[line] then
          local waiter_id = string.sub(line, id_at)
          local owner, slot_of_owner, waiter_number = string.match(waiter_id, '^(%w+):(%d+):(%d+)$')
          local waiter_field = SLOT_FIELD .. owner .. ':' .. slot_of_owner
          local session = sessions_read[owner]
          if not session then
            session = {expires = 0}
            local record = call('HGET', state, SESSION_FIELD .. owner)
            if record and #record == SESSION_SIZE then
              session.expires, session.notices, session.slots = decode(SESSION, record)
            end
            sessions_read[owner] = session
          end
          local waiter = call('HGET', state, waiter_field)
          local is_waiting = false
          local in_slot, wanted, waiter_tick, mode, priority, name_at
          if waiter and string.sub(waiter, 1, 1) == WAITING then
            local _
            _, in_slot, wanted, waiter_tick, mode, priority, name_at = decode(CLAIM, waiter)
            is_waiting = in_slot == tonumber(waiter_number)
          end
          -- `other_line` stays nil, and is not appended to `zrem`, unless the waiter is a member of a group.
          local note, other_line = '', nil
          if is_waiting and mode == MEMBER then
            -- A member waits in two lines. It needs no permit if its group has entered.
            note = string.sub(waiter, name_at + #resource_field)
            if group then
              other_line = QUEUE_LINE .. name .. '\0' .. priority .. encode(TICK, waiter_tick) .. waiter_id
            else
              other_line = MEMBER_LINE .. name .. note .. '\0' .. waiter_id
            end
            removed[other_line] = true
            if not members[note] then
              local record = call('HGET', state, GROUP_FIELD .. name .. note)
              local group_members, group_created = 0, nil
              if record then group_members, group_created = decode(GROUP, record) end
              members[note] = group_created == created and group_members or 0
            end
            if members[note] > 0 then wanted = 0 end
          end
          if not is_waiting or session.expires <= now then
            -- As in grant.lua.
            if session.expires > 0 and session.expires <= now then session.expires, session.is_changed = 0, true end
            zrem[#zrem + 1] = line
            zrem[#zrem + 1] = other_line
            if is_waiting then hdel[#hdel + 1] = waiter_field end
            waiting = waiting - 1
          elseif free < wanted then
            is_blocked = true
            if other_line then removed[other_line] = nil end
            break
          else
            tick = (tick or decode(NUMBER, call('HGET', state, 'clock') or NEVER)) + 1
            if not (tick >= now and tick < MAX_TICK) then tick = now end
            free, waiting = free - wanted, waiting - 1
            zrem[#zrem + 1] = line
            zrem[#zrem + 1] = other_line
            local waiter_state = HELD
            if mode == CONSUME then
              waiter_state, consumed = GRANTED, consumed + wanted
            else
              zadd[#zadd + 1] = '0'
              zadd[#zadd + 1] = HOLDER_LINE .. name .. '\0' .. waiter_id
            end
            if mode == MEMBER then
              -- The group has the permit, the claim has none. The first member to enter brings in the others.
              wanted, members[note] = 0, members[note] + 1
              if members[note] == 1 then entering_group = string.sub(note, 2) end
            end
            hset[#hset + 1] = waiter_field
            hset[#hset + 1] = encode(CLAIM, waiter_state, in_slot, wanted, tick, mode, priority)
              .. resource_field .. note
            session.notices, session.is_changed = session.notices + 1, true
            wakeups[owner] = (wakeups[owner] and wakeups[owner] .. ' ' or '')
              .. waiter_number .. ' ' .. format('%d', tick)
          end
          budget = budget - 1
        end
      end
    end
    for note, count in pairs(members) do
      if count > 0 then
        hset[#hset + 1] = GROUP_FIELD .. name .. note
        hset[#hset + 1] = encode(GROUP, count, created)
      end
    end
    if entering_group and waiting > 0 then
      zadd[#zadd + 1] = '0'
      zadd[#zadd + 1] = ENTERING_LINE .. name .. '\0' .. entering_group
    end
    if budget == 0 and waiting > 0 then
      zadd[#zadd + 1] = '0'
      zadd[#zadd + 1] = RECHECK_LINE .. name
      reply = {'more', reply}
    end
  end
end
