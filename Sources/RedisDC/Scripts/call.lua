-- Keeps the reply of a request that creates no claim, which its operation has set, and begins the changes that the
-- following parts complete. A new resource takes a tick.
if not resource then
  if not now then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  tick = decode(NUMBER, call('HGET', state, 'clock') or NEVER) + 1
  if not (tick >= now and tick < MAX_TICK) then tick = now end
  created = tick
else
  tail = string.sub(resource, TAIL)
end
local hset, hdel, zadd, zrem = {slot_field, encode(SLOT, DONE, number) .. reply}, {}, {}, {}
local sessions_read = {}
local wakeups
local name = string.sub(resource_field, 3)
reply = tonumber(reply)
