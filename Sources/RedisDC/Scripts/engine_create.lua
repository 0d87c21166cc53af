-- Creates a resource if it does not exist.
-- ARGV
--   [6] to [8]: kind, permits, policy: see engine_resource
-- Reply: {'ok', 1 if this request created it, else 0}, or a refusal.
if previous then
  reply = {'ok', 1}
elseif refusal then
  reply = refusal
else
  if is_new then
    resource_changed = true
    hset[#hset + 1] = CLAIM_FIELD .. request_id
    hset[#hset + 1] = ENDED
    last_answer, session_changed = math.max(last_answer, request), true
  end
  reply = {'ok', is_new and 1 or 0}
end
