-- Made from Sources/GameServices/Lua by scripts/lua.
local bucket_epoch, bucket_version, bucket_tag, bucket_first, bucket_exists, bucket_state, bucket_index
local call, keys = redis.call, KEYS
do
  local state = keys[1]
  local index = keys[2]
  local log_2 = keys[4]
  bucket_state, bucket_index = state, index
  local stored = call('HGET', state, 'b')
  if stored then
    bucket_epoch, bucket_version, bucket_tag, bucket_first = struct.unpack('<c8dc8ddd', stored)
    bucket_exists = call('LLEN', log_2) == bucket_version - bucket_first + 1
  end
end
if not bucket_exists then
  return {'none'}
end
local start = ARGV[3]
local max_count, max_bytes = struct.unpack('<dd', ARGV[4])
local sub = string.sub
local bound = sub(start, 1, 1) == '0' and '[k' or '(k'
local members = call('ZRANGEBYLEX', bucket_index, bound .. sub(start, 2), '(l', 'LIMIT', '0', max_count + 1)
local size, objects, taken = 0, {}, 0
while taken < #members and taken < max_count and (taken == 0 or size < max_bytes) do
  local last = math.min(taken + 32, #members, max_count)
  local records = call('HMGET', bucket_state, unpack(members, taken + 1, last))
  for i = 1, #records do
    taken = taken + 1
    size = size + #records[i]
    objects[#objects + 1] = sub(members[taken], 2)
    objects[#objects + 1] = records[i]
  end
end
return {'ok', struct.pack('<c8dc8', bucket_epoch, bucket_version, bucket_tag), taken < #members and 1 or 0, objects}
