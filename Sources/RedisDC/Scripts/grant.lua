-- Grants permits to waiters: first come, first served, as long as there are enough for the first one.
--
-- grants_wanted: false; true; or 'again' (see recheck.lua), which also grants where overtaking is allowed. Otherwise
-- the first waiter of such a semaphore is only woken to try, and may be overtaken. If it never tries, a heartbeat finds
-- the name again.
-- The number of waiters that this script may still remove from the queue.
local budget = 128
if grants_wanted and kind and waiting > 0 and free > 0 and kind ~= DESTROYED and kind ~= BROKEN then
  local from, to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
  -- In a waiter's line the claim follows QUEUE_LINE, the name, a zero byte, a priority and a tick of 8 bytes.
  local claim_at = #name + 12
  wakeups = wakeups or {}
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
    if not now then
      local time = call('TIME')
      now = time[1] * 1000000 + time[2]
    end
    local offset, is_blocked = 0, false
    local removed = zrem[1]
    while waiting > 0 and free > 0 and budget > 0 and not is_blocked do
      -- One line first, because most often one waiter is granted.
      local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', offset, offset == 0 and '1' or '32')
      offset = offset + #lines
      -- The index lacks waiters that the record counts: someone has changed it.
      if #lines == 0 then waiting = 0 end
      for i = 1, #lines do
        local line = lines[i]
        if budget == 0 or free <= 0 then break end
        if line ~= removed then
          local waiter_id = string.sub(line, claim_at)
          local colon = string.find(waiter_id, ':', 1, true)
          local second_colon = string.find(waiter_id, ':', colon + 1, true)
          local owner, waiter_number = string.sub(waiter_id, 1, colon - 1), string.sub(waiter_id, second_colon + 1)
          local waiter_field = SLOT_FIELD .. string.sub(waiter_id, 1, second_colon - 1)
          local session = sessions_read[owner]
          local waiter
          if session then
            waiter = call('HGET', state, waiter_field)
          else
            local records = call('HMGET', state, waiter_field, SESSION_FIELD .. owner)
            waiter = records[1]
            session = {expires = 0}
            if records[2] and #records[2] == SESSION_SIZE then
              session.expires, session.notices, session.slots = decode(SESSION, records[2])
            end
            sessions_read[owner] = session
          end
          local waiter_state, in_slot, wanted, waiter_tick, waiter_mode, waiter_priority = DONE, 0, nil, nil, nil, nil
          if waiter then waiter_state, in_slot = decode(SLOT, waiter) end
          if waiter_state == WAITING and in_slot == tonumber(waiter_number) then
            waiter_state, in_slot, wanted, waiter_tick, waiter_mode, waiter_priority = decode(CLAIM, waiter)
          else
            waiter_state = DONE
          end
          if waiter_state == DONE or session.expires <= now then
            -- A waiter whose session has expired is passed over. Its slot keeps nothing for the sweep to end. From now on
            -- the session has expired for every script: see layout.lua.
            if session.expires > 0 and session.expires <= now then session.expires, session.is_changed = 0, true end
            zrem[#zrem + 1] = line
            if waiter_state == WAITING then hdel[#hdel + 1] = waiter_field end
            waiting = waiting - 1
          elseif free < wanted then
            is_blocked = true
            break
          else
            zrem[#zrem + 1] = line
            free, waiting = free - wanted, waiting - 1
            local fence
            if waiter_mode == CONSUME then
              consumed, fence = consumed + wanted, '1'
              waiter_state, waiter_tick = GRANTED, created
            else
              tick = (tick or decode(NUMBER, call('HGET', state, 'clock') or NEVER)) + 1
              if not (tick >= now and tick < MAX_TICK) then tick = now end
              fence = format('%d', tick)
              waiter_state, waiter_tick = HELD, tick
              if waiter_mode == SOLE then
                tail = waiter_id
              elseif waiter_mode == COHORT then
                tail, signalled = waiter_id, tick + FENCES - 1
                -- After the fence, whether others wait behind the cohort: 2, or 1 if not.
                fence = fence .. (waiting > 0 and '/2' or '/1')
              else
                zadd[#zadd + 1] = '0'
                zadd[#zadd + 1] = HOLDER_LINE .. name .. '\0' .. waiter_id
              end
            end
            hset[#hset + 1] = waiter_field
            hset[#hset + 1] = encode(CLAIM, waiter_state, in_slot, wanted, waiter_tick, waiter_mode, waiter_priority)
              .. resource_field
            session.notices, session.is_changed = session.notices + 1, true
            wakeups[owner] = (wakeups[owner] and wakeups[owner] .. ' ' or '') .. waiter_number .. ' ' .. fence
          end
          budget = budget - 1
        end
      end
    end
    if budget == 0 and waiting > 0 then
      zadd[#zadd + 1] = '0'
      zadd[#zadd + 1] = RECHECK_LINE .. name
      reply = {'more', reply}
    end
  end
end
