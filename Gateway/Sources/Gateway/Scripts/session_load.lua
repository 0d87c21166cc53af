-- Made from Gateway/Sources/Gateway/Lua by scripts/lua.
local call = redis.call
local now
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local fields = call('HMGET', KEYS[1], 'user', 'device', 'token', 'cookie', 'expires', 'replaced', 'ended')
local reply = {string.format('%d', now)}
for i = 1, 7 do
  reply[i + 1] = fields[i] or ''
end
return reply
