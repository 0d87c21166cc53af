-- Made from Sources/QueueListen/Lua by scripts/lua.
local record, later = KEYS[1], KEYS[2]
local arguments = ARGV
local id, lifetime, cancelled = arguments[1], arguments[2], arguments[3]
local fields = redis.pcall('HMGET', record, 'p', 'd', 'c', 'x', 'r')
if fields.err then
  return {'foreign', record}
end
local encoded, due, calls, is_cancelled, rule = fields[1], fields[2], fields[3], fields[4], fields[5]
local last = calls and string.sub(calls, 1, 8)
if cancelled == '' and not last or cancelled ~= '' and last and not string.find(cancelled, last, 1, true) then
  return {0}
end
if is_cancelled then
  return {1, calls, 0}
end
local call = redis.call
if last then
  local score = redis.pcall('ZSCORE', later, id)
  if type(score) == 'table' then
    return {'foreign', later}
  end
  if not encoded or not rule and (not score or tonumber(score) ~= tonumber(due)) then
    return {0}
  end
  call('ZREM', later, id)
  call('HDEL', record, 'p')
  call('HSET', record, 'x', '1', 'c', cancelled == '' and calls or cancelled)
else
  call('HSET', record, 'f', '', 'd', '0', 'c', cancelled, 'x', '1')
end
call('PEXPIRE', record, lifetime)
return {1, calls or cancelled, 1}
