-- The beginning of a script that continues where an earlier one stopped at its bound, or that grants to waiters that
-- may be overtaken. Anyone may run it, without a session.
-- ARGV
--   [1] NAME
-- Reply: 1; {'more', 1} if there is still work left over for the next script; {'family', FAMILY}: the script of this
--   family must run instead, x for one that clears a destroyed or broken resource.
local name = ARGV[1]
local resource_field = RESOURCE_FIELD .. name
local resource = call('HGET', state, resource_field)
local kind, family, waiting, free, consumed, permits, limit, created, signalled
local tail = ''
if resource then
  kind, family, waiting, free, consumed, permits, limit, created, signalled = decode(RESOURCE, resource)
  tail = string.sub(resource, TAIL)
  local needed = (kind == DESTROYED or kind == BROKEN) and 'x' or family
  if needed ~= FAMILY then return {'family', needed} end
end
local hset, hdel, vdel, zadd, zrem = {}, {}, {}, {}, {RECHECK_LINE .. name}
local sessions_read = {}
local wakeups, now, tick, session_field, session_record
local grants_wanted, reply = 'again', 1
