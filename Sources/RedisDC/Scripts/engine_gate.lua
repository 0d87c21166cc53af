-- Opens a turnstile, or locks it.
-- ARGV
--   [6] to [8]: kind, permits, policy: see engine_resource
--   [9] is_open: 1 to open it, 0 to lock it
-- Reply: {'ok', 1 if waiters are left over for engine_give}, or a refusal.
if previous then
  reply = {'ok'}
elseif refusal then
  reply = refusal
else
  -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
  call('HDEL', state, '')
  local passages = ARGV[9] == '1' and OPEN or 0
  limit, free, resource_changed = limit + passages - free, passages, true
  hset[#hset + 1] = CLAIM_FIELD .. request_id
  hset[#hset + 1] = ENDED
  last_answer, session_changed = math.max(last_answer, request), true
  grants_wanted = ON_CHANGE
  reply = {'ok'}
end
