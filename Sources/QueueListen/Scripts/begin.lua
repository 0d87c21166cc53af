-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, split, splits = keys[1], keys[2], keys[3]
local arguments = ARGV
local partitions, id, fingerprint, encoded = arguments[1], arguments[2], arguments[3], arguments[4]
local lifetime = arguments[5]
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
local fields = try('HMGET', split, 'f', 'i')
if fields.err then
  return {'foreign', split}
end
local known, indices = fields[1], fields[2]
if known then
  if known ~= fingerprint then
    return {'conflict'}
  end
  return {'ok', indices or nil}
end
if type(try('ZCARD', splits)) == 'table' then
  return {'foreign', splits}
end
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
call('HSET', split, 'f', fingerprint, 'p', encoded)
call('PEXPIRE', split, lifetime)
call('ZADD', splits, string.format('%d', now), id)
if is_partition_new then
  call('HSET', meta, 'partitions', partitions .. ' layout 2')
end
return {'ok'}
