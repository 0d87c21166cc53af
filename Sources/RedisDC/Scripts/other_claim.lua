-- The beginning of a script that ends a claim of an expired session, or by force one of any session.
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] word for the owner of a claim that is ended by force: lost; or empty, for the claim of an expired session
--   [3] the field of the claim's resource: t:NAME
--   [4] NUMBER of the claim
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck;
--   {'alive'}: no sweep has ended its session; {'family', FAMILY}: the script of this family must run instead.
local slot_field, resource_field, claim_number = ARGV[1], ARGV[3], tonumber(ARGV[4])
local name, claim_id = string.sub(resource_field, 3), string.sub(slot_field, 3) .. ':' .. ARGV[4]
local sid = string.match(claim_id, '^[^:]+')
local stored = call('HMGET', state, slot_field, resource_field, SESSION_FIELD .. sid)
local slot, resource, session = stored[1], stored[2], stored[3]
local kind, family, waiting, free, consumed, permits, limit, created, signalled
local tail = ''
if resource then
  kind, family, waiting, free, consumed, permits, limit, created, signalled = decode(RESOURCE, resource)
  tail = string.sub(resource, TAIL)
end
-- Not by the clock: of a session whose sweep began while the clock was ahead, all claims are ended, or none.
if ARGV[2] == '' and session and #session == SESSION_SIZE and decode(NUMBER, session) > 0 then return {'alive'} end
local claim_state, slot_number = DONE, 0
if slot then claim_state, slot_number = decode(SLOT, slot) end
-- The record of a mutex names the holder: see release_mutex.lua.
local slot_mode = claim_state == HELD and string.sub(slot, 26, 26)
local is_named = (slot_mode == SOLE or slot_mode == COHORT) and family ~= GROUPS
if is_named and tail ~= claim_id then
  claim_state = DONE
  -- If groups used the mutex, which was destroyed, its line is left.
  call('ZREM', index, HOLDER_LINE .. name .. '\0' .. claim_id)
end
if slot_number ~= claim_number or claim_state == DONE then
  -- The slot may have another claim: a request that arrived after the session had expired has reused it.
  if slot_number == claim_number and ARGV[2] == '' then call('HDEL', state, slot_field) end
  return 0
end
local _, _, count, claim_tick, mode, priority, name_at = decode(CLAIM, slot)
-- The record of the slot when the claim has ended; none for an expired session.
local ended_slot
local by_other = true
local tick
if ARGV[2] ~= '' then ended_slot = encode(SLOT, DONE, slot_number) .. ARGV[2] end
