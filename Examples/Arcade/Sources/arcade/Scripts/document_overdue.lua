-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local call = redis.call
local now = call('TIME')[1]
return call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1], 'LIMIT', 0, 100)
