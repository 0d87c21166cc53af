-- Counts down a latch, once for each ID. An open latch stays open, and notes no more IDs.
-- ARGV
--   [4] and [5]: see resource.lua
--   [6] ID, or empty to count in any case
-- Reply: the remaining count; {'more', remaining} if waiters are left over for the next script; or a refusal.
if signalled < limit then
  local is_first = true
  if ARGV[6] ~= '' then
    -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
    call('HDEL', state, '')
    is_first = call('ZADD', index, '0', COUNTED_LINE .. string.sub(resource_field, 3) .. '\0' .. ARGV[6]) == 1
  end
  if is_first then signalled = signalled + 1 end
  if signalled == limit then free = OPEN end
end
local grants_wanted, reply = true, format('%d', math.max(0, limit - signalled))
