-- Made from Gateway/Sources/Gateway/Lua by scripts/lua.
local now
do
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local fields = redis.call('HMGET', KEYS[1], 'user', 'device', 'token', 'cookie', 'expires', 'replaced', 'ended')
local reply = {string.format('%d', now)}
for i = 1, 7 do
  reply[i + 1] = fields[i] or ''
end
return reply
