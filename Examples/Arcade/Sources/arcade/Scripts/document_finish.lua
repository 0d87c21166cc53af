-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
if redis.call('HGET', KEYS[1], 'version') == ARGV[1] then
  redis.call('ZREM', KEYS[2], ARGV[2])
end
return 1
