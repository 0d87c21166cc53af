-- Destroys a resource: its waiters are refused, its holders keep their leases. clear.lua, which follows, does the first
-- part of the work at once, and leaves the rest to others.
-- ARGV
--   [4] kind: only its first letter is compared
-- Reply: 1 if it existed, else 0; {'more', 1} if there is work left over for the next script; {'conflict', kind, limit}
--   (of the existing resource); or a refusal.
local resource = call('HGET', state, resource_field)
local kind, family, waiting, free, consumed, permits, limit, created, signalled
local tail = ''
local hset, hdel, vdel, zadd, zrem = {}, {}, {}, {}, {}
local sessions_read = {}
local wakeups
local name = string.sub(resource_field, 3)
if resource then
  kind, family, waiting, free, consumed, permits, limit, created, signalled = decode(RESOURCE, resource)
  tail = string.sub(resource, TAIL)
  if kind ~= DESTROYED and kind ~= BROKEN and string.sub(kind, 1, 1) ~= string.sub(ARGV[4], 1, 1) then
    return {'conflict', kind, limit}
  end
  if kind == MUTEX and signalled > 0 then
    -- The clock passes the fences that a cohort may use.
    tick, signalled = math.max(signalled, decode(NUMBER, call('HGET', state, 'clock') or NEVER)), 0
  end
  if string.sub(kind, 1, 1) == BUFFER then
    -- The items too, in the same step: an item that is put between two steps would have no place. clear.lua follows.
    local items = call('HGET', state, resource_field .. '#items')
    if items and string.sub(items, 1, 2) == ITEMS then
      hset[1], hset[2] = resource_field .. '#items', DESTROYED .. string.sub(items, 3)
      zadd[1], zadd[2] = '0', RECHECK_LINE .. name .. '#items'
    end
  end
  kind = DESTROYED
end
hset[#hset + 1] = slot_field
hset[#hset + 1] = encode(SLOT, DONE, number) .. (resource and '1' or '0')
local reply = resource and 1 or 0
