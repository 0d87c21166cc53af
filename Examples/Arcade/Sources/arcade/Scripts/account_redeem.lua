-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local arguments = ARGV
local key, account, given = KEYS[1], KEYS[2], arguments[1]
local call = redis.call
local code = call('GET', key)
if code == 'used ' .. given then
  return 2
end
if code ~= given then
  return 0
end
call('SET', key, 'used ' .. code, 'KEEPTTL')
call('HSET', account, arguments[2], arguments[3])
if arguments[4] then
  call('HDEL', account, arguments[4])
end
return 1
