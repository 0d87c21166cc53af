-- Ends the claim of a participant of a latch: its end counts down, unless it was ended by another and that breaks the
-- latch.
local hset, hdel, zadd, zrem = {}, {}, {}, {HOLDER_LINE .. name .. '\0' .. claim_id}
local grants_wanted = false
if resource and claim_tick >= created and kind ~= DESTROYED and kind ~= BROKEN then
  if by_other and kind == LATCH_BROKEN_BY_DEATH then
    kind = BROKEN
    zadd[1], zadd[2] = '0', RECHECK_LINE .. name
  else
    signalled = signalled + 1
    if signalled == limit then free, grants_wanted = OPEN, true end
  end
end
