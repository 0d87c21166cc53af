-- Gives a permit back at the end it was taken from, once for each id however often it is called.
-- KEYS[1] list of permits   KEYS[2] marker of this id
-- ARGV[1] the permit   ARGV[2] seconds that the marker stays
-- Reply: 1 when given back, 0 when it had been before.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'list' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds a ' .. kind .. ', not the permits of a semaphore')
end
if not redis.call('SET', KEYS[2], '1', 'NX', 'EX', ARGV[2]) then return 0 end
redis.call('RPUSH', KEYS[1], ARGV[1])
return 1
