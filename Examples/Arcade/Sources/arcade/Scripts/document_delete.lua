-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local call = redis.call
call('ZREM', KEYS[2], ARGV[1])
return call('DEL', KEYS[1])
