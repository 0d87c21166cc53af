-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local arguments = ARGV
local document, version = KEYS[1], arguments[1]
local call = redis.call
if (call('HGET', document, 'version') or '0') ~= version then
  return 0
end
local time = call('TIME')
call('HSET', document, 'version', version + 1, 'json', arguments[2])
call('ZADD', KEYS[2], time[1], arguments[3])
return 1
