-- Turns a lease of one resource into a permit of another: a place of a buffer into an item, or an item into a place.
-- ARGV
--   [6] to [8]: kind, permits, policy of NAME, which gets the permit: see engine_resource
--   [9] REQ of the claim
--   [10] NAME of the resource that the claim holds
--   [11] item: fills the place. Without it, the item that the claim has taken is deleted.
-- Reply: {'ok', 1 if waiters are left over for engine_give}, {'none'} if the claim is not held, {'gone'} if its
--   resource was destroyed, or a refusal.
if previous then
  reply = {'ok'}
elseif refusal then
  reply = refusal
else
  local claim_number, other_name, item = tonumber(ARGV[9]), ARGV[10], ARGV[11]
  local claim_id = sid .. ':' .. ARGV[9]
  local records = call('HMGET', state, CLAIM_FIELD .. claim_id, RESOURCE_FIELD .. other_name)
  local claim, other = records[1], records[2]
  local claim_state, mode, priority, count, claim_tick, name_at = ENDED, nil, nil, nil, nil, nil
  if claim and claim ~= ENDED then claim_state, mode, priority, count, claim_tick, name_at = decode(CLAIM, claim) end
  local other_kind, other_policy, other_permits, other_limit, other_free, other_waiting, other_created, other_signalled,
    other_consumed
  if other then
    other_kind, other_policy, other_permits, other_limit, other_free, other_waiting, other_created, other_signalled,
      other_consumed = decode(RESOURCE, other)
  end
  if claim_state ~= HELD or not item and mode ~= ITEM or string.match(claim, '^%Z+', name_at) ~= other_name then
    reply = {'none'}
  elseif not other_kind or claim_tick <= other_created then
    reply = {'gone'}
  else
    if item then
      tick = math.max(tick + 1, now)
      local item_key = name .. '\0' .. encode(TICK, tick)
      -- The operation's first write. At maxmemory Redis refuses it, unless the head has confirmed permits of another
      -- resource: then it allows all writes of this script.
      call('HSET', state, ITEM_FIELD .. item_key, item)
      zadd[#zadd + 1] = '0'
      zadd[#zadd + 1] = ITEM_LINE .. item_key
    else
      -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
      call('HDEL', state, '')
      hdel[#hdel + 1] = ITEM_FIELD .. string.sub(claim, name_at)
    end
    zrem[#zrem + 1] = CLAIM_LINE .. claim_id
    zrem[#zrem + 1] = HOLDER_LINE .. other_name .. '\0' .. claim_id
    hset[#hset + 1] = RESOURCE_FIELD .. other_name
    hset[#hset + 1] = encode(RESOURCE, other_kind, other_policy, other_permits, other_limit, other_free, other_waiting,
      other_created, other_signalled, other_consumed + count)
    if claim_number > settled then
      hset[#hset + 1] = CLAIM_FIELD .. claim_id
      hset[#hset + 1] = ENDED
    else
      hdel[#hdel + 1] = CLAIM_FIELD .. claim_id
    end
    free, signalled, resource_changed = free + count, signalled + count, true
    hset[#hset + 1] = CLAIM_FIELD .. request_id
    hset[#hset + 1] = ENDED
    last_answer, session_changed = math.max(last_answer, request, claim_number), true
    grants_wanted = ON_CHANGE
    reply = {'ok'}
  end
end
