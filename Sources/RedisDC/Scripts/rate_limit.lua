-- Made from Sources/RedisDC/Lua by scripts/lua.
local empty_at_key = KEYS[1]
local arguments = ARGV
local interval, burst, cost = tonumber(arguments[1]), tonumber(arguments[2]), tonumber(arguments[3])
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local empty_at
local max = math.max
do
  local full_interval = burst * interval
  empty_at = math.min(now + full_interval, max(now, tonumber(call('GET', empty_at_key) or 0) or 0))
end
local backlog = empty_at - now
local wait = backlog + (cost - burst) * interval
local ceil, format = math.ceil, string.format
if wait > 0 then
  return {0, format('%.0f', ceil(wait)), max(0, math.floor(burst - backlog / interval))}
end
do
  local backlog_2 = backlog + max(1, ceil(cost * interval))
  local ttl = format('%.0f', ceil(backlog_2 / 1000))
  call('SET', empty_at_key, format('%.0f', now + backlog_2), 'PX', ttl)
end
return {1, '0', max(0, math.floor(burst - cost - backlog / interval))}
