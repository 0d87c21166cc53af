-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local call = redis.call
local key, account, given = KEYS[1], KEYS[2], ARGV[1]
local code = call('GET', key)
if code == 'used ' .. given then
  return 2
end
if code ~= given then
  return 0
end
call('SET', key, 'used ' .. code, 'KEEPTTL')
call('HSET', account, ARGV[2], ARGV[3])
if ARGV[4] then
  call('HDEL', account, ARGV[4])
end
return 1
