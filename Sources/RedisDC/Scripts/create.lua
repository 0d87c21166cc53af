-- Creates a resource if it does not exist.
-- ARGV
--   [4] and [5]: see resource.lua
-- Reply: 1 if this request created it, else 0; or a refusal.
if not resource then
  -- A write that Redis refuses at maxmemory, so that nothing is written then.
  call('HSET', state, slot_field, encode(SLOT, DONE, number))
end
local grants_wanted, reply = false, resource and '0' or '1'
