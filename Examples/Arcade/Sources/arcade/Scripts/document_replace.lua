-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local arguments, call = ARGV, redis.call
local document, version = KEYS[1], arguments[1]
if (call('HGET', document, 'version') or '0') ~= version then
  return 0
end
local time = call('TIME')
call('HSET', document, 'version', version + 1, 'json', arguments[2])
call('ZADD', KEYS[2], time[1], arguments[3])
return 1
