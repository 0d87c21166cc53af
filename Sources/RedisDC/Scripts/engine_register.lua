-- Registers a party without waiting: of a phaser, or of a latch that the end of this claim counts down.
-- ARGV
--   [6] to [8]: kind, permits, policy: see engine_resource
-- Reply: {'granted', fence}, {'over'} (the claim has already ended: cancelled, or released by force), or a refusal.
if previous == ENDED then
  reply = {'over'}
elseif previous then
  local _, _, _, _, claim_tick = decode(CLAIM, previous)
  reply = {'granted', format('%.0f', claim_tick)}
elseif refusal then
  reply = refusal
elseif kind == PHASER and limit >= 1024 then
  return redis.error_reply('RDC the phaser ' .. name .. ' has 1024 parties, which is the most')
else
  tick = math.max(tick + 1, now)
  call('ZADD', index, '0', CLAIM_LINE .. request_id, '0', HOLDER_LINE .. name .. '\0' .. request_id)
  if kind == PHASER then limit = limit + 1 end
  resource_changed = true
  hset[#hset + 1] = CLAIM_FIELD .. request_id
  hset[#hset + 1] = encode(CLAIM, HELD, LEASE, ORDINARY, 1, tick) .. name
  reply = {'granted', format('%.0f', tick)}
end
