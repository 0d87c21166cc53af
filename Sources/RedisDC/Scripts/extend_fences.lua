-- Reserves more fences for a cohort that holds a mutex, and says whether others wait for it.
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] not used
--   [3] the field of the mutex: t:NAME
--   [4] NUMBER of the claim
--   [5] used: the last fence that the cohort has used
-- Reply: {the last fence that it may use, number of waiters}, or {'none'} if the mutex's record does not name the
--   claim: it is not held, or groups use the mutex.
local resource = call('HGET', state, ARGV[3])
if not resource or string.sub(resource, TAIL) ~= string.sub(ARGV[1], 3) .. ':' .. ARGV[4] then return {'none'} end
local kind, family, waiting, free, consumed, permits, limit, created, signalled = decode(RESOURCE, resource)
if kind ~= MUTEX or family ~= PERMITS then return {'none'} end
-- A deletion first, after which Redis allows the write also at maxmemory.
call('HDEL', state, '')
signalled = math.max(signalled, ARGV[5] + FENCES)
local record = encode(RESOURCE, kind, family, waiting, free, consumed, permits, limit, created, signalled)
call('HSET', state, ARGV[3], record .. string.sub(resource, TAIL))
return {signalled, waiting}
