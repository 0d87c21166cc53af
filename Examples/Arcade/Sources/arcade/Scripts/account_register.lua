-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local call = redis.call
local account = KEYS[1]
if call('HSETNX', account, 'password', ARGV[1]) == 0 then
  return 0
end
call('HSET', account, 'email', ARGV[2])
call('PERSIST', account)
return 1
