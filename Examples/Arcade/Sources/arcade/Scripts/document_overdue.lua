-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local now = redis.call('TIME')[1]
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1], 'LIMIT', '0', '100')
