-- Made from Sources/QueueListen/Lua by scripts/lua.
local arguments, call = ARGV, redis.call
local split, splits = KEYS[1], KEYS[2]
local id, indices, lifetime = arguments[1], arguments[2], arguments[3]
call('ZREM', splits, id)
if call('HDEL', split, 'p') == 0 then
  return 0
end
call('HSET', split, 'i', indices)
call('PEXPIRE', split, lifetime)
return 1
