-- Records in its slot that a request was refused, so that a copy of it that arrives late is repeated and has no effect.
--
-- A request that is refused writes nothing. If its connection was lost before it was sent again, the first copy may still
-- arrive, and be granted what the second one was refused. So the refusal counts when this script has confirmed it. It has
-- the slot and the number of the request, and runs after new_claim.lua or new_call.lua: if a copy has taken effect since,
-- they reply what it did.
-- ARGV
--   [3] empty
-- Reply: -1, after new_claim.lua {'over', '-1'} if it is repeated; or a refusal as in slot.lua.
-- A deletion first, after which Redis allows the writes also at maxmemory.
call('HDEL', state, '')
call('HSET', state, slot_field, encode(SLOT, DONE, number) .. '-1')
if session_record then call('HSET', state, session_field, session_record) end
return -1
