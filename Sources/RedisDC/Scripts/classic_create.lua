-- Creates a classic semaphore exactly once, however many programs call this, in steps of 10,000 permits: each call adds
-- those of one step, until none is missing, whoever makes it.
-- KEYS
--   [1] permits: list with an element for each permit
--   [2] meta: hash with `permits`, the number that the semaphore was created with, and `missing`, how many of them are not
--       in the list yet
--   [3] tombstones: list that wakes the waiters of a destroyed semaphore
-- ARGV
--   [1] permits: number of permits
--   [2] 1 to add a step to an existing semaphore only, or nothing
-- Reply: {1, permits, missing} if this call created it, {0, permits that it was created with, missing} if it existed. With
--   [2], {0, permits, 0} if it has been destroyed. If it has other permits, nothing is added.
local permits = tonumber(ARGV[1])
local type_found = redis.call('TYPE', KEYS[1]).ok
if type_found ~= 'none' and type_found ~= 'list' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds a ' .. type_found .. ', not the permits of a semaphore')
end
local stored = redis.call('HMGET', KEYS[2], 'permits', 'missing')
local existing, missing = tonumber(stored[1] or nil), tonumber(stored[2] or 0)
if existing and existing ~= permits then return {0, existing, 0} end
if not existing then
  if ARGV[2] then return {0, permits, 0} end
  redis.call('HSET', KEYS[2], 'permits', string.format('%d', permits))
  redis.call('DEL', KEYS[3])
  missing = permits
end
if missing > 0 then
  local step = math.min(missing, 10000)
  missing = missing - step
  if missing > 0 then
    redis.call('HSET', KEYS[2], 'missing', string.format('%d', missing))
  else
    redis.call('HDEL', KEYS[2], 'missing')
  end
  -- In batches, because Lua cannot pass on any number of arguments.
  while step > 0 do
    local batch = {}
    for i = 1, math.min(step, 4000) do batch[i] = '1' end
    redis.call('LPUSH', KEYS[1], unpack(batch))
    step = step - #batch
  end
end
return {existing and 0 or 1, permits, missing}
