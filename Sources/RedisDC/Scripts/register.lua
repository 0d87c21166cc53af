-- Registers a party without waiting: of a phaser, or of a latch that the end of this claim counts down.
-- ARGV
--   [4] and [5]: see resource.lua
--   [6] mode: r party of a phaser, p participant of a latch
-- Reply: the fence; {fence, count} if the request is repeated; {'over', word} if its claim was ended by another (see
--   DONE); or a refusal.
if kind == PHASER and limit >= 1024 then
  return redis.error_reply('RDC the phaser ' .. string.sub(resource_field, 3) .. ' has 1024 parties, which is the most')
end
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
tick = decode(NUMBER, call('HGET', state, 'clock') or NEVER) + 1
if not (tick >= now and tick < MAX_TICK) then tick = now end
created = created or tick
if resource then tail = string.sub(resource, TAIL) end
if kind == PHASER then limit = limit + 1 end
local claim_id = string.sub(slot_field, 3) .. ':' .. ARGV[2]
call('ZADD', index, '0', HOLDER_LINE .. string.sub(resource_field, 3) .. '\0' .. claim_id)
call('HSET', state,
  slot_field, encode(CLAIM, HELD, number, 1, tick, ARGV[6], ORDINARY) .. resource_field,
  resource_field, encode(RESOURCE, kind, family, waiting, free, consumed, permits, limit, created, signalled) .. tail,
  'clock', encode(NUMBER, tick))
if session_record then call('HSET', state, session_field, session_record) end
return tick
