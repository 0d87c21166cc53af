-- Made from Sources/QueueListen/Lua by scripts/lua.
local call = redis.call
local split, splits = KEYS[1], KEYS[2]
local id, indices, lifetime = ARGV[1], ARGV[2], ARGV[3]
call('ZREM', splits, id)
if call('HDEL', split, 'p') == 0 then
  return 0
end
call('HSET', split, 'i', indices)
call('PEXPIRE', split, lifetime)
return 1
