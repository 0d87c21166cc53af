-- Adds permits.
-- ARGV
--   [6] to [8]: kind, permits, policy: see engine_resource
--   [9] count: number of permits to add
-- Reply: {'ok', 1 if waiters are left over for engine_give}, or a refusal.
if previous then
  reply = {'ok'}
elseif refusal then
  reply = refusal
else
  -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
  call('HDEL', state, '')
  local count = tonumber(ARGV[9])
  free, signalled, resource_changed = free + count, signalled + count, true
  hset[#hset + 1] = CLAIM_FIELD .. request_id
  hset[#hset + 1] = ENDED
  last_answer, session_changed = math.max(last_answer, request), true
  grants_wanted = ON_CHANGE
  reply = {'ok'}
end
