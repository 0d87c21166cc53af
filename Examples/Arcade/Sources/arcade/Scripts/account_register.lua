-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local account = KEYS[1]
local call = redis.call
if call('HSETNX', account, 'password', ARGV[1]) == 0 then
  return 0
end
call('HSET', account, 'email', ARGV[2])
call('PERSIST', account)
return 1
