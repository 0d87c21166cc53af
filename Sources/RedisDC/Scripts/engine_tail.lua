-- The end of every composed script: grants to waiters, writes what has changed, publishes the wake-ups.
--
-- Inputs, all declared in engine_head: the resource (kind, policy, free, …), the session (grants, settled, …), tick,
-- grants_wanted, resource_changed, session_changed, hset, hdel, zadd, zrem, wakeups, and the reply, which the operation
-- has set. The tail appends 1 to the reply if waiters are left over for engine_give.
--
-- Arguments of LIMIT and scores are strings where possible, because converting a number into a string costs time.

-- In a waiter's line the claim's ID follows QUEUE_LINE, the name, a zero byte, a priority and a tick of 8 bytes.
local queue_from, queue_to, waiter_id_at
if grants_wanted and kind and waiting > 0 then
  queue_from, queue_to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
  waiter_id_at = #name + 12
end
-- The number of waiters that this script may still remove from the queue.
local budget = 128

-- A barrier grants to all its waiters at once, as soon as enough of them are alive. What the parties bring to an
-- exchanger is kept under the tick of the meeting.
local meeting, brought
if grants_wanted and (kind == BARRIER or kind == EXCHANGER or kind == PHASER) and waiting >= limit and limit > 0 then
  local leaving, living = {}, 0
  for i = 1, #zrem do leaving[zrem[i]] = true end
  for _, line in ipairs(call('ZRANGEBYLEX', index, queue_from, queue_to)) do
    local waiter_id = string.sub(line, waiter_id_at)
    local owner = string.sub(waiter_id, 1, string.find(waiter_id, ':', 1, true) - 1)
    local session = not leaving[line] and owner ~= sid and call('HGET', state, SESSION_FIELD .. owner)
    if not leaving[line] and (owner == sid or session and decode(NUMBER, session) > now) then living = living + 1 end
  end
  if living >= limit then
    free, signalled, resource_changed = limit, signalled + 1, true
    budget = waiting
    if kind == EXCHANGER then
      tick = math.max(tick + 1, now)
      meeting, brought = encode(TICK, tick), {}
    end
  end
end

-- The group that has entered, and whose waiters enter now without a permit. CATCH_UP continues with a group that an
-- earlier script has left over.
local entering_group
if grants_wanted == CATCH_UP and kind then
  local from, to = '[' .. ENTERING_LINE .. name .. '\0', '(' .. ENTERING_LINE .. name .. '\1'
  local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '2')
  if #lines > 0 then
    -- The group's name follows ENTERING_LINE, the resource's name and a zero byte.
    local group_name = string.sub(lines[1], #name + 3)
    local group = call('HGET', state, GROUP_FIELD .. name .. '\0' .. group_name)
    local _, group_created = 0, nil
    if group then _, group_created = decode(GROUP, group) end
    if group_created == created and kind ~= DESTROYED then entering_group = group_name end
    zrem[#zrem + 1] = lines[1]
  end
  if #lines == 2 then
    zadd[#zadd + 1] = '0'
    zadd[#zadd + 1] = RECHECK_LINE .. name
    reply[#reply + 1] = 1
  end
end

-- First come, first served, while there are enough permits for the first waiter. A destroyed or broken resource refuses
-- all its waiters with a verdict. Waiters beyond the budget are left for the next script (RECHECK_LINE).
local verdict = kind == DESTROYED and 'gone' or kind == BROKEN and 'broken'
if grants_wanted and kind and waiting > 0 and (free > 0 or verdict or entering_group) then
  -- Records of the sessions of the waiters, by SID.
  local sessions_of_waiters = {}
  wakeups = wakeups or {}
  if policy == OVERTAKING and kind == SEMAPHORE and grants_wanted == ON_CHANGE then
    -- The first waiter is only woken to try, and may be overtaken. If it never tries, a heartbeat finds the name again.
    local line = call('ZRANGEBYLEX', index, queue_from, queue_to, 'LIMIT', '0', '1')[1]
    if line then
      local waiter_id = string.sub(line, waiter_id_at)
      local colon = string.find(waiter_id, ':', 1, true)
      local owner, number = string.sub(waiter_id, 1, colon - 1), string.sub(waiter_id, colon + 1)
      wakeups[owner] = (wakeups[owner] and wakeups[owner] .. ' ' or '') .. number .. ' try'
      zadd[#zadd + 1] = '0'
      zadd[#zadd + 1] = RECHECK_LINE .. name
    end
  else
    -- Where the queue is read, and whether its first waiter wants more than is free.
    local queue_offset, is_blocked = 0, false
    -- Members that have entered, by the note of their group, and where the waiters of the entering group are read.
    local members, group_offset = {}, 0
    -- Lines that the tail removes, which are still in the index.
    local removed = {}
    for i = 1, #zrem do removed[zrem[i]] = true end
    while waiting > 0 and budget > 0 and (entering_group or not is_blocked and (free > 0 or verdict)) do
      local lines, id_at
      local group = entering_group
      if group then
        local prefix = MEMBER_LINE .. name .. '\0' .. group
        lines = call('ZRANGEBYLEX', index, '[' .. prefix .. '\0', '(' .. prefix .. '\1', 'LIMIT', group_offset, '32')
        group_offset, id_at = group_offset + #lines, #prefix + 2
        if #lines == 0 then entering_group, group_offset = nil, 0 end
      else
        -- One line first, because most often one waiter is granted.
        lines = call('ZRANGEBYLEX', index, queue_from, queue_to, 'LIMIT', queue_offset == 0 and '0' or queue_offset,
          queue_offset == 0 and '1' or '32')
        queue_offset, id_at = queue_offset + #lines, waiter_id_at
        if #lines == 0 then
          -- The index lacks waiters that the record counts: someone has changed it.
          waiting, resource_changed = 0, true
        end
      end
      for i = 1, #lines do
        local line = lines[i]
        if budget == 0 or free <= 0 and not verdict and not group then break end
        if entering_group ~= group then
          -- A group has entered with the grant before this line. Afterwards the queue continues at this line.
          queue_offset = queue_offset - #lines + i - 1
          break
        end
        if not removed[line] then
          local waiter_id = string.sub(line, id_at)
          local colon = string.find(waiter_id, ':', 1, true)
          local owner, number = string.sub(waiter_id, 1, colon - 1), string.sub(waiter_id, colon + 1)
          local records = call('HMGET', state, CLAIM_FIELD .. waiter_id, SESSION_FIELD .. owner)
          local claim = records[1]
          local claim_state, mode, priority, count, claim_tick, name_at = ENDED, nil, nil, nil, nil, nil
          if claim and claim ~= ENDED then
            claim_state, mode, priority, count, claim_tick, name_at = decode(CLAIM, claim)
          end
          -- `other_line` stays nil, and is not appended to `zrem`, unless the waiter is a member of a group.
          local note, other_line = '', nil
          if claim_state == WAITING and mode == MEMBER then
            -- A member waits in two lines. It needs no permit if its group has entered.
            note = string.sub(claim, name_at + #name)
            if group then
              other_line = QUEUE_LINE .. name .. '\0' .. priority .. encode(TICK, claim_tick) .. waiter_id
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
            if members[note] > 0 then count = 0 end
          end
          local session = sessions_of_waiters[owner]
          if not session and owner ~= sid then
            session = {expires = 0, settled = 0, last_answer = 0, grants = 0, changed = false}
            if records[2] then
              session.expires, session.settled, session.last_answer, session.grants = decode(SESSION, records[2])
            end
            sessions_of_waiters[owner] = session
          end
          local is_alive = owner == sid or session.expires > now
          if claim_state ~= WAITING or not is_alive then
            -- A waiter whose session has expired is passed over.
            zrem[#zrem + 1] = line
            zrem[#zrem + 1] = CLAIM_LINE .. waiter_id
            zrem[#zrem + 1] = other_line
            hdel[#hdel + 1] = CLAIM_FIELD .. waiter_id
            waiting = waiting - 1
          elseif verdict then
            zrem[#zrem + 1] = line
            zrem[#zrem + 1] = CLAIM_LINE .. waiter_id
            zrem[#zrem + 1] = other_line
            if tonumber(number) <= (owner == sid and settled or session.settled) then
              -- A kept answer of a settled request would never be deleted.
              hdel[#hdel + 1] = CLAIM_FIELD .. waiter_id
            else
              -- The request may be repeated.
              hset[#hset + 1] = CLAIM_FIELD .. waiter_id
              hset[#hset + 1] = ENDED
              if owner == sid then
                last_answer, session_changed = math.max(last_answer, tonumber(number)), true
              else
                session.last_answer, session.changed = math.max(session.last_answer, tonumber(number)), true
              end
            end
            wakeups[owner] = (wakeups[owner] and wakeups[owner] .. ' ' or '') .. number .. ' ' .. verdict
            waiting = waiting - 1
          elseif free < count then
            is_blocked = true
            break
          else
            tick = math.max(tick + 1, now)
            free, waiting = free - count, waiting - 1
            zrem[#zrem + 1] = line
            zrem[#zrem + 1] = other_line
            local arrival = ''
            if mode == MEMBER then
              -- The group has the permit, the claim has none. The first member to enter brings in the others.
              count, members[note] = 0, members[note] + 1
              if members[note] == 1 then entering_group = string.sub(note, 2) end
            elseif kind == BARRIER or kind == EXCHANGER or kind == PHASER then
              -- The generation and the place in it, from 0. There are at most 1,024 parties.
              count = (signalled - 1) * 1024 + limit - free - 1
              arrival = '/' .. format('%.0f', count)
              if meeting then
                brought[#brought + 1] = string.sub(claim, name_at + #name + 1)
                note = '\0' .. meeting
              end
            end
            if mode ~= CONSUME then
              zadd[#zadd + 1] = '0'
              zadd[#zadd + 1] = HOLDER_LINE .. name .. '\0' .. waiter_id
            end
            hset[#hset + 1] = CLAIM_FIELD .. waiter_id
            claim_state = mode == CONSUME and GRANTED or HELD
            hset[#hset + 1] = encode(CLAIM, claim_state, mode, priority, count, tick) .. name .. note
            if owner == sid then
              grants, session_changed = grants + 1, true
            else
              session.grants, session.changed = session.grants + 1, true
            end
            wakeups[owner] = (wakeups[owner] and wakeups[owner] .. ' ' or '')
              .. number .. ' ' .. format('%.0f', tick) .. arrival
          end
          resource_changed = true
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
    for owner, session in pairs(sessions_of_waiters) do
      if session.changed then
        hset[#hset + 1] = SESSION_FIELD .. owner
        hset[#hset + 1] = encode(SESSION, session.expires, session.settled, session.last_answer, session.grants)
      end
    end
    if budget == 0 and waiting > 0 then
      zadd[#zadd + 1] = '0'
      zadd[#zadd + 1] = RECHECK_LINE .. name
      reply[#reply + 1] = 1
    end
  end
end

if meeting then
  hset[#hset + 1] = MEETING_FIELD .. name .. '\0' .. meeting
  hset[#hset + 1] = cmsgpack.pack(brought)
  hset[#hset + 1] = UNREAD_FIELD .. name .. '\0' .. meeting
  hset[#hset + 1] = #brought
end

-- A condition keeps no permits for later waiters.
if kind == CONDITION and free > waiting then
  signalled, free, resource_changed = signalled - free + waiting, waiting, true
end
if resource_changed then
  -- An unused resource is deleted if it can be created again as it was.
  if waiting == 0 and (kind == DESTROYED or kind == CONDITION
    or (kind == MUTEX or kind == READ_WRITE_LOCK) and free == limit or kind == PHASER and limit == 0) then
    hdel[#hdel + 1] = RESOURCE_FIELD .. name
  else
    hset[#hset + 1] = RESOURCE_FIELD .. name
    hset[#hset + 1] = encode(RESOURCE, kind, policy, permits, limit, free, waiting, created, signalled, consumed)
  end
end
if session_changed then
  hset[#hset + 1] = SESSION_FIELD .. sid
  hset[#hset + 1] = encode(SESSION, expires, settled, last_answer, grants)
end
-- Deletions first: Redis allows them at maxmemory, and after them the rest of the script's writes.
if #zrem > 0 then call('ZREM', index, unpack(zrem)) end
if #hdel > 0 then call('HDEL', state, unpack(hdel)) end
if #zadd > 0 then call('ZADD', index, unpack(zadd)) end
if #hset > 0 then call('HSET', state, 'clock', encode(NUMBER, tick), unpack(hset)) end
if wakeups then
  -- The key of the state without its ending, `book`.
  local channel = string.sub(state, 1, -5) .. 'wake:'
  for owner, text in pairs(wakeups) do call('PUBLISH', channel .. owner, text) end
end
return reply
