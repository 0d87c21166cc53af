-- Arrives at a barrier, phaser or exchanger, and waits for the others.
-- ARGV
--   [4] and [5]: see resource.lua
--   [6] mode: a arrival; e arrival at an exchanger
--   [7] the value that the party brings to an exchanger
-- Reply: 0: queued, also for the last party, which is woken like the others; {'more', 0} if waiters are left over for
--   the next script; {fence, generation * 1024 + index} if the request is repeated after the grant; {'over', word} if
--   its claim was ended by another (see DONE); or a refusal.
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
tick = decode(NUMBER, call('HGET', state, 'clock') or NEVER) + 1
if not (tick >= now and tick < MAX_TICK) then tick = now end
if resource then
  tail = string.sub(resource, TAIL)
else
  created, free = tick, 0
end
local name = string.sub(resource_field, 3)
local claim_id = string.sub(slot_field, 3) .. ':' .. ARGV[2]
if ARGV[7] then call('HSET', values, BROUGHT_FIELD .. claim_id, ARGV[7]) end
call('ZADD', index, '0', QUEUE_LINE .. name .. '\0' .. ORDINARY .. encode(TICK, tick) .. claim_id)
-- Written at once, because the next part may grant this claim.
call('HSET', state, slot_field, encode(CLAIM, WAITING, number, 1, tick, ARGV[6], ORDINARY) .. resource_field)
waiting = waiting + 1
local hset, hdel, vdel, zadd, zrem = {}, {}, {}, {}, {}
local sessions_read = {}
local wakeups
local grants_wanted, reply = true, 0
