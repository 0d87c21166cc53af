-- Releases some of the permits of a lease and keeps its fence: a writer becomes a reader.
-- ARGV
--   [6] REQ of the claim
--   [7] keep: number of permits to keep
-- Reply: {'ok', permits that the claim had, 0 if it is not held, 1 if waiters are left over for engine_give}
local claim_field, keep = CLAIM_FIELD .. sid .. ':' .. ARGV[6], tonumber(ARGV[7])
local claim = call('HGET', state, claim_field)
local had = 0
if claim and claim ~= ENDED then
  local claim_state, mode, priority, count, claim_tick, name_at = decode(CLAIM, claim)
  if string.sub(claim, name_at) ~= name then
    return redis.error_reply('RDC the claim ' .. ARGV[6] .. ' is not of ' .. name)
  end
  if claim_state == HELD then
    had = count
    if count > keep then
      -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
      call('HDEL', state, '')
      if kind and claim_tick > created then free, resource_changed = free + count - keep, true end
      hset[#hset + 1] = claim_field
      hset[#hset + 1] = encode(CLAIM, claim_state, mode, priority, keep, claim_tick) .. name
      grants_wanted = ON_CHANGE
    end
  end
end
reply = {'ok', format('%.0f', had)}
