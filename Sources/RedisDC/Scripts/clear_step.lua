-- One step: at most 160 waiters, 320 lines of each other sort, and items of 8 MiB.
local verdict = kind == DESTROYED and 'gone' or 'broken'
local is_done = true
if kind and waiting > 0 then
  local from, to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
  local claim_at = #name + 12
  local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '160')
  wakeups = wakeups or {}
  for i = 1, #lines do
    local claim_id = string.sub(lines[i], claim_at)
    local owner, slot_of_owner, claim_number = string.match(claim_id, '^(%w+):(%d+):(%d+)$')
    local waiter_field = SLOT_FIELD .. owner .. ':' .. slot_of_owner
    local waiter = call('HGET', state, waiter_field)
    zrem[#zrem + 1] = lines[i]
    if waiter and string.sub(waiter, 1, 1) == WAITING then
      local _, in_slot, _, _, mode, _, name_at = decode(CLAIM, waiter)
      if in_slot == tonumber(claim_number) then
        if mode == MEETING then vdel[#vdel + 1] = BROUGHT_FIELD .. claim_id end
        if mode == MEMBER then
          zrem[#zrem + 1] = MEMBER_LINE .. name .. string.sub(waiter, name_at + #resource_field) .. '\0' .. claim_id
        end
        hset[#hset + 1] = waiter_field
        hset[#hset + 1] = encode(SLOT, DONE, in_slot) .. verdict
        local session = sessions_read[owner]
        if not session then
          session = {}
          local record = call('HGET', state, SESSION_FIELD .. owner)
          if record and #record == SESSION_SIZE then
            session.expires, session.notices, session.slots = decode(SESSION, record)
            session.is_changed = true
          end
          sessions_read[owner] = session
        end
        if session.is_changed then session.notices = session.notices + 1 end
        wakeups[owner] = (wakeups[owner] and wakeups[owner] .. ' ' or '') .. claim_number .. ' ' .. verdict
      end
    end
  end
  waiting = #lines < 160 and 0 or math.max(0, waiting - 160)
  is_done = #lines < 160
end
if kind == DESTROYED then
  for _, letter in ipairs({COUNTED_LINE, ITEM_LINE, ENTERING_LINE}) do
    local lines = call('ZRANGEBYLEX', index, '[' .. letter .. name .. '\0', '(' .. letter .. name .. '\1', 'LIMIT', '0',
      '320')
    local bytes = 0
    is_done = is_done and #lines < 320
    for i = 1, #lines do
      if bytes >= 8388608 then
        is_done = false
        break
      end
      zrem[#zrem + 1] = lines[i]
      if letter == ITEM_LINE then
        local item_field = ITEM_FIELD .. string.sub(lines[i], 2)
        vdel[#vdel + 1] = item_field
        bytes = bytes + call('HSTRLEN', values, item_field)
      end
    end
  end
end
if kind and not is_done then
  zadd[#zadd + 1] = '0'
  zadd[#zadd + 1] = RECHECK_LINE .. name
  reply = {'more', reply}
end
if kind == DESTROYED and is_done then
  hdel[#hdel + 1] = resource_field
elseif kind then
  hset[#hset + 1] = resource_field
  hset[#hset + 1] = encode(RESOURCE, kind, family, waiting, free, consumed, permits, limit, created, signalled) .. tail
end
-- The resource is written; the following part writes the rest.
kind = nil
