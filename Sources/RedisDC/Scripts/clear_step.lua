-- One step: at most 256 waiters, and 500 lines of each other sort.
local verdict = kind == DESTROYED and 'gone' or 'broken'
local is_done = true
if kind and waiting > 0 then
  local from, to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
  local claim_at = #name + 12
  local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '256')
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
  waiting = #lines < 256 and 0 or math.max(0, waiting - 256)
  is_done = #lines < 256
end
if kind == DESTROYED then
  for _, letter in ipairs({COUNTED_LINE, ITEM_LINE, ENTERING_LINE}) do
    local lines = call('ZRANGEBYLEX', index, '[' .. letter .. name .. '\0', '(' .. letter .. name .. '\1', 'LIMIT', '0',
      '500')
    for i = 1, #lines do
      zrem[#zrem + 1] = lines[i]
      if letter == ITEM_LINE then hdel[#hdel + 1] = ITEM_FIELD .. string.sub(lines[i], 2) end
    end
    is_done = is_done and #lines < 500
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
