-- Reads a page of the objects, in the order of their keys. Follows presence_head.
-- ARGV[3] where the page begins: 0KEY at this key (0 alone: at the first one), or 1KEY after this key
-- ARGV[4] maximum number of objects, and of their bytes (one object of any size is returned)
-- Reply: {'ok', the position, 1 if more follow, the objects as key, record, ...}, or {'none'}
if not bucket then
  return {'none'}
end
local max_count, max_bytes = unpacked('<dd', ARGV[4])
local bound = string.sub(ARGV[3], 1, 1) == '0' and '[k' or '(k'
local keys = call('ZRANGEBYLEX', index, bound .. string.sub(ARGV[3], 2), '(l', 'LIMIT', 0, max_count + 1)
local size, objects, taken = 0, {}, 0
local chunk = 32
while taken < #keys and taken < max_count and (taken == 0 or size < max_bytes) do
  local last = math.min(taken + chunk, #keys, max_count)
  local records = call('HMGET', state, unpack(keys, taken + 1, last))
  for i = 1, #records do
    taken = taken + 1
    size = size + #records[i]
    objects[#objects + 1] = string.sub(keys[taken], 2)
    objects[#objects + 1] = records[i]
  end
end
return {'ok', pack('<c8dc8', epoch, version, tag), taken < #keys and 1 or 0, objects}
