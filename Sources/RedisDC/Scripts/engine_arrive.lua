-- Arrives at a barrier, phaser or exchanger, and waits there for the others.
-- ARGV[9] what it brings, at an exchanger
-- Reply: {'queued'} (also for the last one, who hears of it like the others), {'over'} (this request was cancelled before it
--     came), when it is sent again {'granted', fence, generation * 1024 + arrival}, or a refusal.
if answer == 'd' then
  reply = {'over'}
elseif answer then
  local state, _, _, n, at = unpacked('<c1c1c1dd', answer)
  reply = state == 'w' and {'queued'} or {'granted', format('%.0f', at), format('%.0f', n)}
elseif refusal then
  reply = refusal
else
  tick = math.max(tick + 1, now)
  call('ZADD', index, '0', 's' .. me, '0', 'q' .. name .. '\0' .. '1' .. pack('>I8', tick) .. me)
  -- At once, because the tail may let it pass.
  local mode, note = 'c', ''
  if kind == 'e' then mode, note = 'e', '\0' .. ARGV[9] end
  call('HSET', book, 'c:' .. me, pack('<c1c1c1dd', 'w', mode, '1', 1, tick) .. name .. note)
  waiting, resource_changed = waiting + 1, true
  gives = 'fair'
  reply = {'queued'}
end
