-- Opens a turnstile for all, or locks it.
-- ARGV[9] 1 to open it, 0 to lock it
-- Reply: {'ok', 1 if there may be more to give}, or a refusal.
if answer then
  reply = {'ok'}
elseif refusal then
  reply = refusal
else
  call('HDEL', book, '')
  local passes = ARGV[9] == '1' and OPEN or 0
  limit, free, resource_changed = limit + passes - free, passes, true
  sets[#sets + 1] = 'c:' .. me
  sets[#sets + 1] = 'd'
  last, session_changed = math.max(last, req), true
  gives = 'fair'
  reply = {'ok'}
end
