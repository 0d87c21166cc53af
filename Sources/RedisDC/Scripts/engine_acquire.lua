-- Acquires permits, or queues for them.
-- ARGV
--   [6] to [8]: kind, permits, policy: see engine_resource
--   [9] wanted: number of permits
--   [10] mode: c consume, l lease, t lease as a member of a group
--   [11] if_free: 1 replies 'none' when the permits cannot be granted now; 0 queues then
--   [12] priority: 0 precedes all waiters with 1 and does not queue behind them; 1 by default
--   [13] group: in mode t. A member whose group has entered needs no permit.
-- Reply: {'granted', fence}, {'queued'}, {'none'} (see [11]), {'over'} (the claim has already ended: cancelled,
--   destroyed with its resource, or released by force), or a refusal.
if previous == ENDED then
  reply = {'over'}
elseif previous then
  local claim_state, _, _, _, claim_tick = decode(CLAIM, previous)
  reply = claim_state == WAITING and {'queued'} or {'granted', format('%.0f', claim_tick)}
elseif refusal then
  reply = refusal
else
  local wanted, mode, priority = tonumber(ARGV[9]), ARGV[10], ARGV[12] or ORDINARY
  local passes = free >= wanted and (waiting == 0 or policy == OVERTAKING)
  local note, members = '', 0
  if mode == MEMBER then
    note = '\0' .. ARGV[13]
    local group = call('HGET', state, GROUP_FIELD .. name .. note)
    if group then
      local count, group_created = decode(GROUP, group)
      -- Not the members that hold a destroyed resource of the same name.
      if group_created == created then members = count end
    end
    passes = members > 0 or free >= wanted and waiting == 0
  end
  if free >= wanted and not passes and priority == PREFERRED then
    local from, to = '[' .. QUEUE_LINE .. name .. '\0' .. PREFERRED, '(' .. QUEUE_LINE .. name .. '\0' .. ORDINARY
    passes = #call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1') == 0
  end
  if passes then
    tick = math.max(tick + 1, now)
    -- The operation's first write. At maxmemory Redis refuses it, unless the head has confirmed permits of another
    -- resource: then it allows all writes of this script.
    if mode == CONSUME then
      call('ZADD', index, '0', CLAIM_LINE .. request_id)
    else
      call('ZADD', index, '0', CLAIM_LINE .. request_id, '0', HOLDER_LINE .. name .. '\0' .. request_id)
    end
    if mode == MEMBER then
      -- The group has the permit, the claim has none.
      hset[#hset + 1] = GROUP_FIELD .. name .. note
      hset[#hset + 1] = encode(GROUP, members + 1, created)
      if members == 0 then free = free - wanted end
      wanted = 0
    end
    free, resource_changed = free - wanted, true
    hset[#hset + 1] = CLAIM_FIELD .. request_id
    hset[#hset + 1] = encode(CLAIM, mode == CONSUME and GRANTED or HELD, mode, priority, wanted, tick) .. name .. note
    reply = {'granted', format('%.0f', tick)}
  elseif ARGV[11] == '1' then
    reply = {'none'}
  else
    tick = math.max(tick + 1, now)
    local queue_line = QUEUE_LINE .. name .. '\0' .. priority .. encode(TICK, tick) .. request_id
    call('ZADD', index, '0', CLAIM_LINE .. request_id, '0', queue_line)
    waiting, resource_changed = waiting + 1, true
    if mode == MEMBER then
      zadd[#zadd + 1] = '0'
      zadd[#zadd + 1] = MEMBER_LINE .. name .. note .. '\0' .. request_id
    end
    hset[#hset + 1] = CLAIM_FIELD .. request_id
    hset[#hset + 1] = encode(CLAIM, WAITING, mode, priority, wanted, tick) .. name .. note
    reply = {'queued'}
  end
end
