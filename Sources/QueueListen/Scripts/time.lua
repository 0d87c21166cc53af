-- Made from Sources/QueueListen/Lua by scripts/lua.
local now
do
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
return {'ok', string.format('%d', now)}
