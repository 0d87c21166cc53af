-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local record, unfinished, answer = keys[1], keys[2], keys[3]
local arguments = ARGV
local id, indices, lifetime = arguments[1], arguments[2], arguments[3]
local call = redis.call
call('ZREM', unfinished, id)
if call('HDEL', record, 'p') == 0 then
  return 0
end
call('HSET', record, 'i', indices)
call('PEXPIRE', record, lifetime)
if answer then
  call('PEXPIRE', answer, lifetime)
end
return 1
