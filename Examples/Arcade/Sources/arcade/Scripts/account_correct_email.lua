-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local call = redis.call
local account = KEYS[1]
if call('HGET', account, 'verified') == '1' then
  return 0
end
call('HSET', account, 'email', ARGV[1])
call('DEL', KEYS[2])
return 1
