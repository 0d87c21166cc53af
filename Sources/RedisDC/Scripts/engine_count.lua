-- Counts a latch down, once for each ID.
-- ARGV[9] ID, or empty
-- Reply: {'ok', how many are still to come, 1 if there may be more to give}, or a refusal.
if answer then
  -- What it was told then: only one is told that it was the last.
  reply = {'ok', string.sub(answer, 2)}
elseif refusal then
  reply = refusal
else
  -- A change that takes nothing away and adds nothing: after it, Redis lets the rest pass at maxmemory too.
  call('HDEL', book, '')
  if ARGV[9] == '' or call('ZADD', index, '0', 'd' .. name .. '\0' .. ARGV[9]) == 1 then
    signalled = signalled + 1
    -- From now on it is open for everyone.
    if signalled == limit then free = OPEN end
  end
  resource_changed = true
  sets[#sets + 1] = 'c:' .. me
  local left = format('%.0f', math.max(0, limit - signalled))
  sets[#sets + 1] = 'd' .. left
  last, session_changed = math.max(last, req), true
  gives = 'fair'
  reply = {'ok', left}
end
