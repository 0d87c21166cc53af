-- Ends a claim on permits: removes a waiter from the queue, releases the permits of a holder.
-- ARGV
--   [5] used: the last fence that a cohort has used. Without it, all that it has reserved count as used.
if family == GROUPS then return {'family', family} end
if mode == ITEM then return {'family', mode} end
if string.sub(slot, name_at) ~= resource_field then
  return redis.error_reply('RDC the claim ' .. claim_id .. ' is not of ' .. name)
end
local hset, hdel, zadd, zrem = {}, {}, {}, {}
local grants_wanted = false
if claim_state == WAITING then
  zrem[1] = QUEUE_LINE .. name .. '\0' .. priority .. encode(TICK, claim_tick) .. claim_id
  if resource then waiting, grants_wanted = waiting - 1, true end
else
  if is_named then
    tail = ''
    if slot_mode == COHORT then
      -- The clock passes the fences that the cohort has used.
      tick = math.max(tonumber(ARGV[5] or signalled), decode(NUMBER, call('HGET', state, 'clock') or NEVER))
      signalled = 0
    end
  elseif claim_state == HELD then
    zrem[1] = HOLDER_LINE .. name .. '\0' .. claim_id
  end
  -- The claim may be on a destroyed resource of the same name.
  if resource and claim_tick >= created then
    free, grants_wanted = free + count, true
    if claim_state == GRANTED then consumed = consumed - count end
  end
end
