-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local call = redis.call
if call('HGET', KEYS[1], 'version') == ARGV[1] then
  call('ZREM', KEYS[2], ARGV[2])
end
return 1
