-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])
