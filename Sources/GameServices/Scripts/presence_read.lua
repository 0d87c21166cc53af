-- Made from Sources/GameServices/Lua by scripts/lua.
local bucket_epoch, bucket_version, bucket_tag, bucket_first, bucket_exists, bucket_log
local call, unpacked = redis.call, struct.unpack
do
  local state = KEYS[1]
  local log_2 = KEYS[4]
  bucket_log = log_2
  local stored = call('HGET', state, 'b')
  if stored then
    bucket_epoch, bucket_version, bucket_tag, bucket_first = unpacked('<c8dc8ddd', stored)
    bucket_exists = call('LLEN', log_2) == bucket_version - bucket_first + 1
  end
end
if not bucket_exists then
  return {'gap'}
end
local position_epoch, position_version, position_tag = unpacked('<c8dc8', ARGV[3])
if position_epoch ~= bucket_epoch or position_version < bucket_first or position_version > bucket_version then
  return {'gap'}
end
local at_position = call('LINDEX', bucket_log, position_version - bucket_first)
if string.sub(at_position, 1, 8) ~= position_tag then
  return {'gap'}
end
local max_count, max_bytes = unpacked('<dd', ARGV[4])
local start = position_version - bucket_first + 1
local count = math.min(max_count, bucket_version - position_version)
local found = count > 0 and call('LRANGE', bucket_log, start, start + count - 1) or {}
local size, taken = 0, {}
for i = 1, #found do
  size = size + #found[i]
  if i > 1 and size > max_bytes then
    break
  end
  taken[i] = found[i]
end
return {'ok', position_version + #taken < bucket_version and 1 or 0, taken}
