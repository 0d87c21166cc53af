-- Made from Sources/QueueListen/Lua by scripts/lua.
local splits, age, maximum = KEYS[1], ARGV[1], ARGV[2]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local format = string.format
local ids = call('ZRANGEBYSCORE', splits, '-inf', format('%d', now - age), 'LIMIT', '0', maximum)
for _, id in ipairs(ids) do
  call('ZADD', splits, format('%d', now), id)
end
return ids
