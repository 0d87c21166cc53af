-- Made from Sources/QueueListen/Lua by scripts/lua.
local later, pause, maximum = KEYS[1], ARGV[1], ARGV[2]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000
end
local format = string.format
local ids = call('ZRANGEBYSCORE', later, '-inf', format('%d', now), 'LIMIT', '0', maximum)
for _, id in ipairs(ids) do
  call('ZADD', later, format('%d', now + pause), id)
end
local first = call('ZRANGEBYSCORE', later, '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
local reply = {format('%d', now * 1000), first[2] and format('%d', first[2]) or ''}
for _, id in ipairs(ids) do
  reply[#reply + 1] = id
end
return reply
