-- Turns a lease of one resource into a permit of another: a place of a buffer into an item, or an item into a place.
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] NUMBER of this request, which ends the claim
--   [3] field of the resource that gets the permit: t:NAME; [4] and [5]: see resource.lua
--   [6] NUMBER of the claim
--   [7] field of the resource that the claim holds: t:NAME
--   [8] item: fills the place. Without it, the item that the claim has taken is deleted.
--   [9] id of the put: see known_put.lua
-- Reply: 1; {'more', 1} if waiters are left over for the next script; {'none'} if the claim is not held; {'gone'} if
--   its resource was destroyed; or a refusal.
local slot_field, number, resource_field = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local name = string.sub(resource_field, 3)
local slot = call('HGET', state, slot_field)
if not slot then return {'none'} end
local slot_state, slot_number = decode(SLOT, slot)
if slot_number == number then return 1 end
if slot_state ~= HELD or slot_number ~= tonumber(ARGV[6]) then return {'none'} end
local claim_id = string.sub(slot_field, 3) .. ':' .. ARGV[6]
-- The claim in this slot is the one that is passed on: to resource.lua the slot is free.
slot_state = DONE
local now, tick, session_field, session_record
