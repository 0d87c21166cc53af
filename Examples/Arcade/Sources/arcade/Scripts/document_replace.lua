-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local call = redis.call
local document, version = KEYS[1], ARGV[1]
if (call('HGET', document, 'version') or '0') ~= version then
  return 0
end
local time = call('TIME')
call('HSET', document, 'version', version + 1, 'json', ARGV[2])
call('ZADD', KEYS[2], time[1], ARGV[3])
return 1
