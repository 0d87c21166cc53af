-- Reads a presence bucket, without a session: the changes after a position, and pages of objects.

-- Reads the changes after a position. Changes nothing.
--
-- KEYS[1] state [2] index [3] due [4] log [5] changes: the bucket's
-- ARGV[1] empty
--     [2] empty
--     [3] the position (Position)
--     [4] maximum number of changes, and of their bytes (Bounds); one change of any size is returned
-- Reply: {'ok', 1 if more follow, the changes}, or {'gap'}: they are no longer known.
function entry.presence_read(keys, arguments)
  local bucket = open_bucket(keys[1], keys[2], keys[3], keys[4])
  if not bucket.exists then return {'gap'} end
  local position = Position.read(arguments[3])
  if position.epoch ~= bucket.epoch or position.version < bucket.first or position.version > bucket.version then
    return {'gap'}
  end
  local at_position = redis.call('LINDEX', bucket.log, position.version - bucket.first)
  if string.sub(at_position, 1, TAG_SIZE) ~= position.tag then return {'gap'} end

  local max = Bounds.read(arguments[4])
  local start = position.version - bucket.first + 1
  local count = math.min(max.count, bucket.version - position.version)
  local found = count > 0 and redis.call('LRANGE', bucket.log, start, start + count - 1) or {}
  local size, taken = 0, {}
  for i = 1, #found do
    size = size + #found[i]
    if i > 1 and size > max.bytes then break end
    taken[i] = found[i]
  end
  return {'ok', position.version + #taken < bucket.version and 1 or 0, taken}
end

-- The maximum number of objects that one command reads.
local OBJECT_CHUNK = 32

-- Reads a page of the objects, in the order of their keys. Changes nothing.
--
-- KEYS[1] state [2] index [3] due [4] log [5] changes: the bucket's
-- ARGV[1] empty
--     [2] empty
--     [3] where the page begins: 0KEY at this key (0 alone: at the first one), or 1KEY after this key
--     [4] maximum number of objects, and of their bytes (Bounds); one object of any size is returned
-- Reply: {'ok', the position, 1 if more follow, the objects as key, record, ...}, or {'none'}: there is no bucket.
function entry.presence_page(keys, arguments)
  local bucket = open_bucket(keys[1], keys[2], keys[3], keys[4])
  if not bucket.exists then return {'none'} end
  local start = arguments[3]
  local max = Bounds.read(arguments[4])
  local bound = string.sub(start, 1, 1) == '0' and '[k' or '(k'
  local members =
    redis.call('ZRANGEBYLEX', bucket.index, bound .. string.sub(start, 2), '(l', 'LIMIT', 0, max.count + 1)
  local size, objects, taken = 0, {}, 0
  while taken < #members and taken < max.count and (taken == 0 or size < max.bytes) do
    local last = math.min(taken + OBJECT_CHUNK, #members, max.count)
    local records = redis.call('HMGET', bucket.state, unpack(members, taken + 1, last))
    for i = 1, #records do
      taken = taken + 1
      size = size + #records[i]
      objects[#objects + 1] = string.sub(members[taken], 2)
      objects[#objects + 1] = records[i]
    end
  end
  return {'ok', pack_position(bucket), taken < #members and 1 or 0, objects}
end
