-- Ends a claim in any state: removes a waiter from the queue, releases the permits of a holder.
-- ARGV
--   [6] REQ of the claim
--   [7] owner: SID of its session, or empty for the calling session. Another session's claim is ended only if that
--       session has expired, or by force.
--   [8] condition: 1 by force, for an operator; w only if the claim still waits; or empty
-- Reply: {'ended', claim_state before (w, g, h, d if there was no claim), 1 if waiters are left over for engine_give},
--   {'granted', fence, count} with [8] w if the claim no longer waits, or a refusal.
local BY_FORCE, IF_WAITING = '1', 'w'
local owner, condition = ARGV[7] == '' and sid or ARGV[7], ARGV[8]
local claim_id = owner .. ':' .. ARGV[6]
local claim_number = tonumber(ARGV[6])
local claim = call('HGET', state, CLAIM_FIELD .. claim_id)
-- The session record of another owner, if that is alive.
local living_owner = owner ~= sid and call('HGET', state, SESSION_FIELD .. owner)
local owner_expires, owner_settled, owner_last_answer, owner_grants
if living_owner then
  owner_expires, owner_settled, owner_last_answer, owner_grants = decode(SESSION, living_owner)
  if owner_expires > now and condition ~= BY_FORCE then
    return redis.error_reply('RDC the claim ' .. claim_id .. ' is of a living session')
  end
  if owner_expires <= now then living_owner = nil end
end
local claim_state, priority, count, claim_tick, name_at, mode = ENDED, nil, nil, nil, nil, nil
if claim and claim ~= ENDED then
  claim_state, mode, priority, count, claim_tick, name_at = decode(CLAIM, claim)
end
if condition == IF_WAITING and (claim_state == GRANTED or claim_state == HELD) then
  reply = {'granted', format('%.0f', claim_tick), format('%.0f', count)}
else
  if claim_state ~= ENDED then
    local note
    local claim_name = string.sub(claim, name_at)
    if mode == MEMBER or mode == ITEM or mode == MEETING then
      local zero = string.find(claim_name, '\0', 1, true)
      claim_name, note = string.sub(claim_name, 1, zero - 1), string.sub(claim_name, zero)
    end
    if claim_name ~= name then return redis.error_reply('RDC the claim ' .. claim_id .. ' is not of ' .. name) end
    zrem[#zrem + 1] = CLAIM_LINE .. claim_id
    if claim_state == WAITING then
      zrem[#zrem + 1] = QUEUE_LINE .. name .. '\0' .. priority .. encode(TICK, claim_tick) .. claim_id
      if mode == MEMBER then zrem[#zrem + 1] = MEMBER_LINE .. name .. note .. '\0' .. claim_id end
      if kind then waiting, resource_changed = waiting - 1, true end
      if kind == BARRIER and policy == BREAKS_BARRIER then kind = BROKEN end
    else
      if claim_state == HELD then zrem[#zrem + 1] = HOLDER_LINE .. name .. '\0' .. claim_id end
      -- The claim may hold permits of a destroyed resource of the same name.
      local is_current = kind and claim_tick > created
      if mode == MEMBER then
        -- The last member to leave releases the permit of the group.
        local group_field = GROUP_FIELD .. name .. note
        local group = call('HGET', state, group_field)
        local members, group_created = 0, claim_tick
        if group then members, group_created = decode(GROUP, group) end
        if group_created < claim_tick and members > 1 then
          hset[#hset + 1] = group_field
          hset[#hset + 1] = encode(GROUP, members - 1, group_created)
        elseif group_created < claim_tick then
          hdel[#hdel + 1] = group_field
          if is_current then count = 1 end
        end
      elseif mode == ITEM then
        -- The item returns to its place in the buffer.
        if is_current and kind == ITEMS then
          zadd[#zadd + 1] = '0'
          zadd[#zadd + 1] = ITEM_LINE .. name .. note
        else
          hdel[#hdel + 1] = ITEM_FIELD .. name .. note
        end
      elseif mode == MEETING then
        -- The last party to leave deletes the values of the meeting.
        local unread_field = UNREAD_FIELD .. name .. note
        local unread = tonumber(call('HGET', state, unread_field) or 1)
        if unread > 1 then
          hset[#hset + 1] = unread_field
          hset[#hset + 1] = format('%.0f', unread - 1)
        else
          hdel[#hdel + 1] = unread_field
          hdel[#hdel + 1] = MEETING_FIELD .. name .. note
        end
      end
      if is_current then
        resource_changed = true
        if kind == PHASER and claim_state == HELD then
          limit = limit - 1
        elseif kind == LATCH and claim_state == HELD then
          if owner ~= sid and policy == BREAKS_LATCH then
            kind = BROKEN
          else
            signalled = signalled + 1
            if signalled == limit then free = OPEN end
          end
        elseif kind ~= BARRIER and kind ~= EXCHANGER and kind ~= PHASER and kind ~= BROKEN then
          free = free + count
        end
      end
    end
    grants_wanted = ON_CHANGE
  end
  -- As long as the request that creates the claim may still arrive, for the first time or again, ENDED stays in its
  -- place.
  if owner == sid and claim_number > settled then
    hset[#hset + 1] = CLAIM_FIELD .. claim_id
    hset[#hset + 1] = ENDED
    last_answer, session_changed = math.max(last_answer, claim_number), true
  elseif living_owner and claim_number > owner_settled then
    hset[#hset + 1] = CLAIM_FIELD .. claim_id
    hset[#hset + 1] = ENDED
    hset[#hset + 1] = SESSION_FIELD .. owner
    owner_last_answer = math.max(owner_last_answer, claim_number)
    hset[#hset + 1] = encode(SESSION, owner_expires, owner_settled, owner_last_answer, owner_grants)
  else
    hdel[#hdel + 1] = CLAIM_FIELD .. claim_id
  end
  if condition == BY_FORCE and claim_state ~= ENDED then wakeups = {[owner] = ARGV[6] .. ' lost'} end
  if #zrem == 0 then
    -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
    call('HDEL', state, '')
  end
  reply = {'ended', claim_state}
end
