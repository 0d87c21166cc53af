-- The beginning of a script that ends a claim of the caller. If it is not there, its request is refused from now on.
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] NUMBER of this request, greater than the claim's
--   [3] the field of the claim's resource: t:NAME
--   [4] NUMBER of the claim
--   [5] and the following: see each operation
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; or a
--   refusal as in slot.lua.
local slot_field, number, resource_field, claim_number = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local name, claim_id = string.sub(resource_field, 3), string.sub(slot_field, 3) .. ':' .. ARGV[4]
local sid = string.match(claim_id, '^[^:]+')
local stored = call('HMGET', state, slot_field, resource_field)
local slot, resource = stored[1], stored[2]
local kind, family, waiting, free, consumed, permits, limit, created, signalled
local tail = ''
if resource then
  kind, family, waiting, free, consumed, permits, limit, created, signalled = decode(RESOURCE, resource)
  tail = string.sub(resource, TAIL)
end
local claim_state, slot_number = DONE, 0
if slot then claim_state, slot_number = decode(SLOT, slot) end
-- The record of a mutex names the holder: see release_mutex.lua.
local slot_mode = claim_state == HELD and string.sub(slot, 26, 26)
local is_sole = slot_mode == SOLE or slot_mode == COHORT
local is_named = is_sole and family ~= GROUPS
if is_named and slot_number == claim_number and tail ~= claim_id then
  claim_state = DONE
  -- If groups used the mutex, which was destroyed, its line is left.
  call('ZREM', index, HOLDER_LINE .. name .. '\0' .. claim_id)
end
if slot_number ~= claim_number or claim_state == DONE then
  local is_free = claim_state == DONE or claim_state == GRANTED or slot_number == claim_number
  if is_sole and not is_free then
    -- An older claim, which Redis holds again if it has lost the end.
    local older_id = string.sub(slot_field, 3) .. ':' .. format('%d', slot_number)
    local older = call('HGET', state, string.sub(slot, 28))
    is_free = not older or string.sub(older, TAIL) ~= older_id
      and not call('ZSCORE', index, HOLDER_LINE .. string.sub(slot, 30) .. '\0' .. older_id)
  end
  if number > slot_number and is_free then
    -- The claim has ended, or its request has not arrived. If it arrives now, it is stale.
    if not slot then
      local session = call('HGET', state, SESSION_FIELD .. sid)
      if not session or #session ~= SESSION_SIZE then return {'lost'} end
      local expires, notices, slots = decode(SESSION, session)
      local slots_used = string.match(slot_field, '%d+$') + 1
      -- A deletion first, after which Redis allows the writes also at maxmemory.
      call('HDEL', state, '')
      call('HSET', state, SESSION_FIELD .. sid, encode(SESSION, expires, notices, math.max(slots, slots_used)))
    end
    call('HDEL', state, '')
    call('HSET', state, slot_field, encode(SLOT, DONE, number))
  end
  return 0
end
local _, _, count, claim_tick, mode, priority, name_at = decode(CLAIM, slot)
-- The record of the slot when the claim has ended.
local ended_slot = encode(SLOT, DONE, number)
local by_other = false
local tick
