-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local account = KEYS[1]
local call = redis.call
if call('HGET', account, 'verified') == '1' then
  return 0
end
call('HSET', account, 'email', ARGV[1])
call('DEL', KEYS[2])
return 1
