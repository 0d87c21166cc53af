-- Adds permits.
-- ARGV[9] how many
-- Reply: {'ok', 1 if there may be more to give}, or a refusal.
if answer then
  reply = {'ok'}
elseif refusal then
  reply = refusal
else
  -- A change that takes nothing away and adds nothing: after it, Redis lets the rest pass at maxmemory too.
  call('HDEL', book, '')
  local n = tonumber(ARGV[9])
  free, signalled, resource_changed = free + n, signalled + n, true
  sets[#sets + 1] = 'c:' .. me
  sets[#sets + 1] = 'd'
  last, session_changed = math.max(last, req), true
  gives = 'fair'
  reply = {'ok'}
end
