-- Reads the changes after a position. Follows presence_head.
-- ARGV[3] the position: epoch, version, tag
-- ARGV[4] maximum number of changes, and of their bytes (one change of any size is returned)
-- Reply: {'ok', 1 if more follow, the changes}, or {'gap'}: they are no longer known.
if not bucket then
  return {'gap'}
end
local its_epoch, its_version, its_tag = unpacked('<c8dc8', ARGV[3])
if its_epoch ~= epoch or its_version < first or its_version > version
  or string.sub(call('LINDEX', log, its_version - first), 1, 8) ~= its_tag then
  return {'gap'}
end
local max_count, max_bytes = unpacked('<dd', ARGV[4])
local start = its_version - first + 1
local count = math.min(max_count, version - its_version)
local found = count > 0 and call('LRANGE', log, start, start + count - 1) or {}
local size, taken = 0, {}
for i = 1, #found do
  size = size + #found[i]
  if i > 1 and size > max_bytes then break end
  taken[i] = found[i]
end
return {'ok', its_version + #taken < version and 1 or 0, taken}
