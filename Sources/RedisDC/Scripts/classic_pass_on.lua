-- Made from Sources/RedisDC/Lua by scripts/lua.
local tombstones_key = KEYS[1]
local call = redis.call
if call('EXISTS', KEYS[2]) == 1 then
  return 0
end
call('LPUSH', tombstones_key, '1')
call('PEXPIRE', tombstones_key, ARGV[1])
return 1
