-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local tombstones_key = keys[3]
local call = redis.call
local existed = call('DEL', keys[1], keys[2])
call('DEL', tombstones_key)
call('LPUSH', tombstones_key, '1', '1', '1', '1', '1', '1', '1', '1')
call('PEXPIRE', tombstones_key, ARGV[1])
if existed > 0 then
  return 1
end
return 0
