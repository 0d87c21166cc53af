-- Opens a generation as soon as enough waiters are alive, and grants to its parties, in steps that anyone continues.
--
-- When a generation opens, `free` is the number of its parties, and TAIL the tick in the queue of the last of them and
-- their number: a phaser's limit may change before all are granted. Who arrives later belongs to the next generation.
-- A party that dies before it is granted has passed, like the others.
local budget = 128
local is_left_over = false
if grants_wanted and kind and kind ~= DESTROYED and kind ~= BROKEN then
  local from, to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
  -- In a waiter's line the tick of 8 bytes follows QUEUE_LINE, the name, a zero byte and a priority; then the claim.
  local tick_at, claim_at = #name + 4, #name + 12
  if not now then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  local leaving = zrem[1]
  if free == 0 and limit > 0 and waiting >= limit then
    local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1536')
    local living, last = 0, nil
    local dead = {}
    for i = 1, #lines do
      local line = lines[i]
      if line ~= leaving then
        local claim_id = string.sub(line, claim_at)
        local owner = string.sub(claim_id, 1, string.find(claim_id, ':', 1, true) - 1)
        local session = sessions_read[owner]
        if not session then
          session = {expires = 0}
          local record = call('HGET', state, SESSION_FIELD .. owner)
          if record and #record == SESSION_SIZE then
            session.expires, session.notices, session.slots = decode(SESSION, record)
          end
          sessions_read[owner] = session
        end
        -- As in grant.lua.
        if session.expires > 0 and session.expires <= now then session.expires, session.is_changed = 0, true end
        if session.expires > 0 then
          living, last = living + 1, line
          if living == limit then break end
        else
          dead[#dead + 1] = line
          if #dead == 256 then break end
        end
      end
    end
    if #dead > 0 and kind == BARRIER_BROKEN_BY_LEAVING then
      kind, is_left_over = BROKEN, true
    else
      -- The slots of the dead are removed with their lines: the sweep of their sessions must not count them again.
      for i = 1, #dead do
        local claim_id = string.sub(dead[i], claim_at)
        zrem[#zrem + 1] = dead[i]
        hdel[#hdel + 1] = SLOT_FIELD .. string.match(claim_id, '^(.*):%d+$')
        if kind == EXCHANGER then vdel[#vdel + 1] = BROUGHT_FIELD .. claim_id end
      end
      waiting = waiting - #dead
      if living == limit then
        free, signalled = limit, signalled + 1
        tail = string.sub(last, tick_at, tick_at + 7) .. encode(NUMBER, limit)
        -- More than 256 parties were checked: the next script begins to grant, so that this one stays short.
        if #lines > 256 then budget = 0 end
      elseif #lines == 1536 or #dead == 256 then
        is_left_over = true
      end
    end
  end
  if free > 0 and kind ~= BROKEN then
    local removed = {}
    for i = 1, #zrem do removed[zrem[i]] = true end
    local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', #zrem + budget)
    local meeting, parties
    wakeups = wakeups or {}
    for i = 1, #lines do
      local line = lines[i]
      if free == 0 or budget == 0 or string.sub(line, tick_at, tick_at + 7) > tail then break end
      if not removed[line] then
        local claim_id = string.sub(line, claim_at)
        local owner, slot_of_owner, claim_number = string.match(claim_id, '^(%w+):(%d+):(%d+)$')
        local party_field = SLOT_FIELD .. owner .. ':' .. slot_of_owner
        local session = sessions_read[owner]
        if not session then
          session = {expires = 0}
          local record = call('HGET', state, SESSION_FIELD .. owner)
          if record and #record == SESSION_SIZE then
            session.expires, session.notices, session.slots = decode(SESSION, record)
          end
          sessions_read[owner] = session
        end
        local party = call('HGET', state, party_field)
        local party_state, in_slot, mode, priority = DONE, 0, nil, nil
        if party and string.sub(party, 1, 1) == WAITING then
          local _
          party_state, in_slot, _, _, mode, priority = decode(CLAIM, party)
        end
        zrem[#zrem + 1] = line
        waiting, budget = waiting - 1, budget - 1
        -- The generation and the index in it, from 0. There are at most 1,024 parties.
        local arrival = (signalled - 1) * 1024 + decode(NUMBER, tail, 9) - free
        free = free - 1
        if in_slot ~= tonumber(claim_number) or session.expires <= now then
          if session.expires > 0 and session.expires <= now then session.expires, session.is_changed = 0, true end
          if party_state == WAITING and in_slot == tonumber(claim_number) then
            hdel[#hdel + 1] = party_field
            if mode == MEETING then vdel[#vdel + 1] = BROUGHT_FIELD .. claim_id end
          end
        else
          local fence, note, granted_state, claim_tick = '1', '', GRANTED, created
          if mode == MEETING then
            if not meeting then
              tick = (tick or decode(NUMBER, call('HGET', state, 'clock') or NEVER)) + 1
              if not (tick >= now and tick < MAX_TICK) then tick = now end
              meeting, parties = encode(TICK, tick), {}
            end
            tick = tick + 1
            parties[#parties + 1] = claim_id
            granted_state, claim_tick, fence, note = HELD, tick, format('%d', tick), '\0' .. meeting
            zadd[#zadd + 1] = '0'
            zadd[#zadd + 1] = HOLDER_LINE .. name .. '\0' .. claim_id
          end
          hset[#hset + 1] = party_field
          hset[#hset + 1] = encode(CLAIM, granted_state, in_slot, arrival, claim_tick, mode, priority)
            .. resource_field .. note
          session.notices, session.is_changed = session.notices + 1, true
          wakeups[owner] = (wakeups[owner] and wakeups[owner] .. ' ' or '') .. claim_number .. ' ' .. fence .. '/'
            .. format('%d', arrival)
        end
      end
    end
    -- The index lacks waiters that the record counts: someone has changed it.
    if budget > 0 and free > 0 then free = 0 end
    if meeting then
      hset[#hset + 1] = MEETING_FIELD .. name .. '\0' .. meeting
      hset[#hset + 1] = encode(NUMBER, #parties) .. table.concat(parties, ' ')
    end
    is_left_over = free > 0 or limit > 0 and waiting >= limit
  end
end
if is_left_over then
  zadd[#zadd + 1] = '0'
  zadd[#zadd + 1] = RECHECK_LINE .. name
  reply = {'more', reply}
end
