-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, record, later = keys[1], keys[2], keys[3]
local arguments = ARGV
local partitions, id, fingerprint, encoded = arguments[1], arguments[2], arguments[3], arguments[4]
local call_2, at, pause, lifetime, maximum = arguments[5], arguments[6], arguments[7], arguments[8], arguments[9]
local rule, lost = arguments[10], tonumber(arguments[11])
local is_partition_new
local try = redis.pcall
do
  local layout = try('HGET', meta, 'partitions')
  if type(layout) == 'table' then
    return {'foreign', meta}
  end
  if layout and layout ~= partitions .. ' layout 2' then
    return {'partitions', layout}
  end
  is_partition_new = not layout
end
local fields = try('HMGET', record, 'f', 'd', 'c', 'x', 'r', 'v')
if fields.err then
  return {'foreign', record}
end
local known, due, calls, is_cancelled, known_rule = fields[1], fields[2], fields[3] or '', fields[4], fields[5]
local version = tonumber(fields[6] or 0)
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000
end
local is_repeated = string.find(calls, call_2, 1, true)
local is_waiting = known and not is_cancelled
local is_same = known == fingerprint and (known_rule or '') == rule
if is_waiting and not is_repeated and not is_same and not (known_rule and rule ~= '') then
  return {'conflict'}
end
local is_newer = not is_same and not (lost and lost <= version)
local is_new = not is_repeated and (not is_waiting or is_newer)
local format = string.format
if is_new then
  local count = try('ZCARD', later)
  if type(count) == 'table' then
    return {'foreign', later}
  end
  if not is_waiting and count >= tonumber(maximum) then
    return {'full'}
  end
  due = at == '' and math.ceil(now + pause) or tonumber(at)
  if rule ~= '' and not lost and due <= now then
    return {'over', format('%d', now * 1000)}
  end
  version = lost or version + 1
  do
    local calls_2 = call_2 .. calls
    local time = format('%d', due)
    call('HSET', record, 'f', fingerprint, 'p', encoded, 'd', time, 'c', string.sub(calls_2, 1, 512))
    call('HDEL', record, 'x', 'r', 'v')
    if rule == '' then
      call('PEXPIREAT', record, format('%d', math.max(due, now) + lifetime))
    else
      call('HSET', record, 'r', rule, 'v', version)
      call('PERSIST', record)
    end
    call('ZADD', later, time, id)
  end
  if is_partition_new then
    call('HSET', meta, 'partitions', partitions .. ' layout 2')
  end
elseif not is_repeated then
  call('HSET', record, 'c', string.sub(call_2 .. calls, 1, 512))
end
return {'ok', format('%d', due), format('%d', now * 1000), version, is_new and 1 or 0}
