-- Made from Gateway/Sources/Gateway/Lua by scripts/lua.
local keys = KEYS
local device, session, older = keys[1], keys[2], keys[3]
local call = redis.call
local current = call('GET', device) or ''
local arguments = ARGV
if current ~= arguments[1] then
  return {'again', current}
end
local now
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local expires
do
  local number = now + tonumber(arguments[7])
  expires = string.format('%d', number)
end
if current ~= '' and call('HDEL', older, 'token', 'cookie') > 0 then
  call('HSET', older, 'replaced', '1')
  local channel = arguments[8]
  redis.pcall('PUBLISH', channel, current)
end
call('HSET', session, 'user', arguments[3], 'device', arguments[4], 'token', arguments[5], 'cookie', arguments[6],
  'expires', expires)
call('PEXPIREAT', session, expires)
call('SET', device, arguments[2], 'PXAT', expires)
return {'ok', string.format('%d', now), expires}
