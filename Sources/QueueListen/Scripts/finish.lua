-- Made from Sources/QueueListen/Lua by scripts/lua.
local split, splits = KEYS[1], KEYS[2]
local arguments = ARGV
local id, indices, lifetime = arguments[1], arguments[2], arguments[3]
local call = redis.call
call('ZREM', splits, id)
if call('HDEL', split, 'p') == 0 then
  return 0
end
call('HSET', split, 'i', indices)
call('PEXPIRE', split, lifetime)
return 1
