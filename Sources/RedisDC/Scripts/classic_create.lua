-- Creates a classic semaphore exactly once, however many programs call this.
-- KEYS
--   [1] permits: list with an element for each permit
--   [2] meta: hash with the number of permits that the semaphore was created with
--   [3] tombstones: list that wakes the waiters of a destroyed semaphore
-- ARGV
--   [1] permits: number of permits
-- Reply: {1, permits} if this call created it, {0, permits that it was created with} if it existed.
local permits = tonumber(ARGV[1])
local type_found = redis.call('TYPE', KEYS[1]).ok
if type_found ~= 'none' and type_found ~= 'list' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds a ' .. type_found .. ', not the permits of a semaphore')
end
local existing = redis.call('HGET', KEYS[2], 'permits')
if existing then
  return {0, tonumber(existing)}
end
redis.call('HSET', KEYS[2], 'permits', string.format('%d', permits))
redis.call('DEL', KEYS[3])
-- In batches, because Lua cannot pass on any number of arguments.
local remaining = permits
while remaining > 0 do
  local batch = {}
  for i = 1, math.min(remaining, 4000) do batch[i] = '1' end
  redis.call('LPUSH', KEYS[1], unpack(batch))
  remaining = remaining - #batch
end
return {1, permits}
