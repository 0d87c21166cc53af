-- Arrives at a barrier, phaser or exchanger, and waits for the others.
-- ARGV
--   [6] to [8]: kind, permits, policy: see engine_resource
--   [9] brought: the value that the party brings to an exchanger
-- Reply: {'queued'}, also for the last party, which is woken like the others; {'over'} (the claim has already ended:
--   cancelled, destroyed with its resource, or released by force); {'granted', fence, generation * 1024 + arrival} if
--   the request is repeated after the grant; or a refusal.
if previous == ENDED then
  reply = {'over'}
elseif previous then
  local claim_state, _, _, count, claim_tick = decode(CLAIM, previous)
  reply = claim_state == WAITING and {'queued'} or {'granted', format('%.0f', claim_tick), format('%.0f', count)}
elseif refusal then
  reply = refusal
else
  tick = math.max(tick + 1, now)
  local queue_line = QUEUE_LINE .. name .. '\0' .. ORDINARY .. encode(TICK, tick) .. request_id
  call('ZADD', index, '0', CLAIM_LINE .. request_id, '0', queue_line)
  -- Written at once, because the tail may grant this claim.
  local mode, note = CONSUME, ''
  if kind == EXCHANGER then mode, note = MEETING, '\0' .. ARGV[9] end
  call('HSET', state, CLAIM_FIELD .. request_id, encode(CLAIM, WAITING, mode, ORDINARY, 1, tick) .. name .. note)
  waiting, resource_changed = waiting + 1, true
  grants_wanted = ON_CHANGE
  reply = {'queued'}
end
