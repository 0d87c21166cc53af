-- Stores the changes that a script has made, and publishes them. Follows presence_edit.
-- ARGV[3] limits of the log: number of changes, bytes
if #logged > 0 then
  local max_count, max_bytes = unpacked('<dd', ARGV[3])
  -- At most a few hundred: the operations are bounded.
  call('RPUSH', log, unpack(logged))
  tag = new_tag
  -- The current version always stays.
  while first < version and (version - first >= max_count or bytes > max_bytes) do
    bytes = bytes - #call('LPOP', log)
    first = first + 1
  end
  is_changed = true
  call('PUBLISH', changes, pack(PUBLISHED, epoch, base_version, base_tag) .. table.concat(published))
end
if is_changed then
  call('HSET', state, 'b', pack(BUCKET, epoch, version, tag, first, bytes, renewed))
end
local position = pack('<c8dc8', epoch, version, tag)
