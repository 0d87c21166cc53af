-- Made from Gateway/Sources/Gateway/Lua by scripts/lua.
local call = redis.call
local device, session, older = KEYS[1], KEYS[2], KEYS[3]
local current = call('GET', device) or ''
if current ~= ARGV[1] then
  return {'again', current}
end
local now
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local expires
do
  local number = now + tonumber(ARGV[7])
  expires = string.format('%d', number)
end
if current ~= '' and call('HDEL', older, 'token', 'cookie') > 0 then
  call('HSET', older, 'replaced', '1')
  local channel = ARGV[8]
  redis.pcall('PUBLISH', channel, current)
end
call('HSET', session, 'user', ARGV[3], 'device', ARGV[4], 'token', ARGV[5], 'cookie', ARGV[6], 'expires', expires)
call('PEXPIREAT', session, expires)
call('SET', device, ARGV[2], 'PXAT', expires)
return {'ok', string.format('%d', now), expires}
