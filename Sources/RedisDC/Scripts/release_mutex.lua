-- Releases a mutex that nobody waits for: deletes its record, which names the holder, and nothing else. The slot keeps
-- saying HELD until its next request. Nobody believes it: all scripts compare a mutex's claim with the record.
local named = call('HGET', state, ARGV[3])
if named and string.sub(named, 1, 11) == MUTEX_WITHOUT_WAITERS
  and string.sub(named, TAIL) == string.sub(ARGV[1], 3) .. ':' .. ARGV[4] then
  call('HDEL', state, ARGV[3])
  return 1
end
