-- Adds permits.
-- ARGV
--   [4] and [5]: see resource.lua
--   [6] count: number of permits to add, 1 by default
-- Reply: 1; {'more', 1} if waiters are left over for the next script; or a refusal.
local count = ARGV[6] and tonumber(ARGV[6]) or 1
free, signalled = free + count, signalled + count
if resource and waiting == 0 and kind ~= CONDITION then
  local written = protected('HSET', state, slot_field, encode(SLOT, DONE, number), resource_field,
    encode(RESOURCE, kind, family, waiting, free, consumed, permits, limit, created, signalled))
  if written == 0 or type(written) == 'number' then
    if session_record then call('HSET', state, session_field, session_record) end
    return 1
  end
  -- Redis is at maxmemory, and write.lua knows what to do.
end
local grants_wanted, reply = true, '1'
