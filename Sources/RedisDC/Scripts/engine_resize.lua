-- Changes the number of permits of a resource. Permits that are held stay held: free may become negative.
-- ARGV
--   [6] to [8]: kind, permits, policy: see engine_resource
--   [9] limit: the new number of permits
-- Reply: {'ok', 1 if waiters are left over for engine_give}, or a refusal.
if previous then
  -- Not a second time: another session may have resized it since.
  reply = {'ok'}
elseif refusal then
  reply = refusal
else
  -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
  call('HDEL', state, '')
  local new_limit = tonumber(ARGV[9])
  free, limit, resource_changed = free + new_limit - limit, new_limit, true
  hset[#hset + 1] = CLAIM_FIELD .. request_id
  hset[#hset + 1] = ENDED
  last_answer, session_changed = math.max(last_answer, request), true
  grants_wanted = ON_CHANGE
  reply = {'ok'}
end
