-- Made from Sources/RedisDC/Lua by scripts/lua.
local call = redis.call
local tombstones_key = KEYS[3]
local existed = call('DEL', KEYS[1], KEYS[2])
call('DEL', tombstones_key)
call('LPUSH', tombstones_key, '1', '1', '1', '1', '1', '1', '1', '1')
call('PEXPIRE', tombstones_key, ARGV[1])
if existed > 0 then
  return 1
end
return 0
