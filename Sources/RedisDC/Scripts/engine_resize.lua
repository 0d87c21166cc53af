-- Changes how many permits a resource has. What is taken stays taken: free may fall below zero.
-- ARGV[9] permits
-- Reply: {'ok', 1 if there may be more to give}, or a refusal.
if answer then
  -- Others may have changed it since.
  reply = {'ok'}
elseif refusal then
  reply = refusal
else
  call('HDEL', book, '')
  local wanted = tonumber(ARGV[9])
  free, limit, resource_changed = free + wanted - limit, wanted, true
  sets[#sets + 1] = 'c:' .. me
  sets[#sets + 1] = 'd'
  last, session_changed = math.max(last, req), true
  gives = 'fair'
  reply = {'ok'}
end
