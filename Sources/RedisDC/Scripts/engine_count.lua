-- Counts down a latch, once for each ID.
-- ARGV
--   [6] to [8]: kind, permits, policy: see engine_resource
--   [9] ID, or empty to count in any case
-- Reply: {'ok', remaining, 1 if waiters are left over for engine_give}, or a refusal.
if previous then
  -- The kept answer: only one request may be the one that reached zero.
  reply = {'ok', string.sub(previous, 2)}
elseif refusal then
  reply = refusal
else
  -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
  call('HDEL', state, '')
  local id = ARGV[9]
  if id == '' or call('ZADD', index, '0', COUNTED_LINE .. name .. '\0' .. id) == 1 then
    signalled = signalled + 1
    -- The latch stays open.
    if signalled == limit then free = OPEN end
  end
  resource_changed = true
  local remaining = format('%.0f', math.max(0, limit - signalled))
  hset[#hset + 1] = CLAIM_FIELD .. request_id
  hset[#hset + 1] = ENDED .. remaining
  last_answer, session_changed = math.max(last_answer, request), true
  grants_wanted = ON_CHANGE
  reply = {'ok', remaining}
end
