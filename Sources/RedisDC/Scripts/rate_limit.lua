-- The generic cell rate algorithm (ITU-T I.371): one number says when the bucket will be empty.
-- KEYS[1] that time, in microseconds of Redis's clock; it expires when it has passed
-- ARGV[1] microseconds for each  [2] how many at once at most  [3] how many now
-- Reply: {1 if they are let pass, microseconds until so many would be, how many more could pass now}.
local each, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0))
-- Differences first: they are exact, however far away that time is.
local behind = full - now
local early = behind + (cost - burst) * each
if early > 0 then
  return {0, string.format('%.0f', math.ceil(early)), math.max(0, math.floor(burst - behind / each))}
end
-- In whole microseconds, rounded up: what is kept must count, however little it is.
behind = behind + math.max(1, math.ceil(cost * each))
redis.call('SET', KEYS[1], string.format('%.0f', now + behind), 'PX', string.format('%.0f', math.ceil(behind / 1000)))
return {1, '0', math.max(0, math.floor(burst - cost - (full - now) / each))}
