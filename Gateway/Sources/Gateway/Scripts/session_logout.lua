-- Made from Gateway/Sources/Gateway/Lua by scripts/lua.
local arguments = ARGV
local session, device, id, repeatable = KEYS[1], KEYS[2], arguments[1], arguments[3]
local call = redis.call
local fields = call('HMGET', session, 'token', 'ended')
local token, ended = fields[1], fields[2]
if token and not ended then
  call('HSET', session, 'ended', '1')
  call('HDEL', session, 'cookie')
  if call('PTTL', session) > tonumber(repeatable) then
    call('PEXPIRE', session, repeatable)
  end
  local channel = arguments[2]
  redis.pcall('PUBLISH', channel, id)
end
if call('GET', device) == id then
  call('DEL', device)
end
