-- Creates a classic semaphore exactly once, however many programs call it.
-- KEYS[1] list of permits   KEYS[2] hash with what it was created with   KEYS[3] list of tombstones
-- ARGV[1] permits
-- Reply: {1, permits} when this call created it, {0, permits it was created with} when it existed.
local permits = tonumber(ARGV[1])
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'list' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds a ' .. kind .. ', not the permits of a semaphore')
end
local existing = redis.call('HGET', KEYS[2], 'permits')
if existing then
  return {0, tonumber(existing)}
end
redis.call('HSET', KEYS[2], 'permits', string.format('%d', permits))
redis.call('DEL', KEYS[3])
local left = permits
while left > 0 do
  local batch = {}
  for i = 1, math.min(left, 4000) do batch[i] = '1' end
  redis.call('LPUSH', KEYS[1], unpack(batch))
  left = left - #batch
end
return {1, permits}
