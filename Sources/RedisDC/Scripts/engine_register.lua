-- Takes part, with nothing to wait for: a phaser has one more party, a latch one whose end counts as down.
-- Reply: {'granted', fence}, {'over'} (this request was cancelled before it came), or a refusal.
if answer == 'd' then
  reply = {'over'}
elseif answer then
  local _, _, _, _, at = unpacked('<c1c1c1dd', answer)
  reply = {'granted', format('%.0f', at)}
elseif refusal then
  reply = refusal
elseif kind == 'p' and limit >= 1024 then
  return redis.error_reply('RDC the phaser ' .. name .. ' has 1024 parties, which is the most')
else
  tick = math.max(tick + 1, now)
  call('ZADD', index, '0', 's' .. me, '0', 'h' .. name .. '\0' .. me)
  if kind == 'p' then limit = limit + 1 end
  resource_changed = true
  sets[#sets + 1] = 'c:' .. me
  sets[#sets + 1] = pack('<c1c1c1dd', 'h', 'l', '1', 1, tick) .. name
  reply = {'granted', format('%.0f', tick)}
end
