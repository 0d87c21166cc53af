-- Releases some of the permits of a lease and keeps its fence: a writer becomes a reader.
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] not used
--   [3] the field of the claim's resource: t:NAME
--   [4] NUMBER of the claim
--   [5] keep: number of permits to keep
-- Reply: permits that the claim has had before this script, 0 if it is not held; {'more', permits} if waiters are left
--   over for the next script.
local slot_field, resource_field, keep = ARGV[1], ARGV[3], tonumber(ARGV[5])
local name = string.sub(resource_field, 3)
local stored = call('HMGET', state, slot_field, resource_field)
local slot, resource = stored[1], stored[2]
if not slot or string.sub(slot, 1, 1) ~= HELD then return 0 end
local _, number, count, claim_tick, mode, priority, name_at = decode(CLAIM, slot)
if number ~= tonumber(ARGV[4]) then return 0 end
if string.sub(slot, name_at) ~= resource_field then
  return redis.error_reply('RDC the claim ' .. ARGV[1] .. ' is not of ' .. name)
end
if count <= keep then return count end
local kind, family, waiting, free, consumed, permits, limit, created, signalled
local tail = ''
local hset, hdel, zadd, zrem = {}, {}, {}, {}
hset[1], hset[2] = slot_field, encode(CLAIM, HELD, number, keep, claim_tick, mode, priority) .. resource_field
if resource then
  kind, family, waiting, free, consumed, permits, limit, created, signalled = decode(RESOURCE, resource)
  tail = string.sub(resource, TAIL)
  if claim_tick >= created then free = free + count - keep end
end
local sessions_read = {}
local wakeups, now, tick, session_field, session_record
local grants_wanted, reply = true, count
