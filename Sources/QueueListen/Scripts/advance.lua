-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local record, later, occurrence_record = keys[1], keys[2], keys[3]
local arguments = ARGV
local id, due, next_due, kept, occurrence = arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]
local fingerprint, encoded, lifetime, pause = arguments[6], arguments[7], arguments[8], arguments[9]
local call = redis.call
local fields = call('HMGET', record, 'd', 'p')
if fields[1] ~= due or not fields[2] then
  return {0}
end
local is_known = redis.pcall('HEXISTS', occurrence_record, 'f') ~= 0
local is_full = call('ZCARD', later) >= tonumber(arguments[10])
local is_missed = occurrence == '' or is_known or is_full
call('ZREM', later, id)
if next_due == '' then
  call('HDEL', record, 'p')
  call('PEXPIRE', record, kept)
else
  call('HSET', record, 'd', next_due)
  call('ZADD', later, next_due, id)
end
if is_missed then
  return {1, 0}
end
local now
do
  local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000
end
call('HSET', occurrence_record, 'f', fingerprint, 'p', encoded, 'd', due)
call('PEXPIRE', occurrence_record, lifetime)
call('ZADD', later, string.format('%d', now + pause), occurrence)
return {1, 1}
