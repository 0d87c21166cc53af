-- Made from Sources/QueueListen/Lua by scripts/lua.
local record, later = KEYS[1], KEYS[2]
local arguments = ARGV
local id, lifetime, call_2 = arguments[1], arguments[2], arguments[3]
local fields = redis.pcall('HMGET', record, 'p', 'd', 'c', 'x')
if fields.err then
  return {'foreign', record}
end
local encoded, due, calls, is_cancelled = fields[1], fields[2], fields[3], fields[4]
local last = calls and string.sub(calls, 1, 8)
if call_2 == '' and not last or call_2 ~= '' and last and last ~= call_2 then
  return {0}
end
if is_cancelled then
  return {1, last, 0}
end
local call = redis.call
if last then
  local score = redis.pcall('ZSCORE', later, id)
  if type(score) == 'table' then
    return {'foreign', later}
  end
  if not encoded or not score or tonumber(score) ~= tonumber(due) then
    return {0}
  end
  call('ZREM', later, id)
  call('HDEL', record, 'p')
  call('HSET', record, 'x', '1')
else
  call('HSET', record, 'f', '', 'd', '0', 'c', call_2, 'x', '1')
end
call('PEXPIRE', record, lifetime)
return {1, last or call_2, 1}
