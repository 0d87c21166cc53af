-- Ends the claim of a party: removes it from the queue, deregisters it, or deletes what it brought.
-- ARGV
--   [5] w: only if the claim still waits; the reply is {fence, generation * 1024 + index} if it was granted. Or
--     nothing.
-- Reply {'again'}: a generation is open, and grants are about to follow: the same request must be sent again.
local hset, hdel, vdel, zadd, zrem = {}, {}, {}, {}, {}
local grants_wanted = false
local note_at = name_at + #resource_field
local has_passed = false
if claim_state == WAITING then
  local queue_tick = encode(TICK, claim_tick)
  if resource and free > 0 and queue_tick <= tail and kind ~= DESTROYED and kind ~= BROKEN then
    if ARGV[5] == 'w' then return {'again'} end
    -- It has passed with its generation.
    free, has_passed = free - 1, true
  elseif resource and free > 0 and kind == BARRIER_BROKEN_BY_LEAVING then
    -- The barrier breaks as soon as the parties of the open generation have been granted.
    return {'again'}
  end
  if mode == MEETING then vdel[1] = BROUGHT_FIELD .. claim_id end
  zrem[1] = QUEUE_LINE .. name .. '\0' .. priority .. queue_tick .. claim_id
  if resource then
    waiting, grants_wanted = waiting - 1, true
    if kind == BARRIER_BROKEN_BY_LEAVING and not has_passed then
      kind = BROKEN
      zadd[1], zadd[2] = '0', RECHECK_LINE .. name
    end
  end
elseif ARGV[5] == 'w' then
  return {claim_tick, count}
elseif claim_state == HELD then
  zrem[1] = HOLDER_LINE .. name .. '\0' .. claim_id
  if mode == PARTY then
    if resource and kind == PHASER and claim_tick >= created then limit, grants_wanted = limit - 1, true end
  else
    -- The last party to leave deletes the values of the meeting.
    local meeting_field = MEETING_FIELD .. name .. string.sub(slot, note_at)
    local meeting = call('HGET', state, meeting_field) or NEVER
    local unread, parties_at = decode(NUMBER, meeting)
    if unread > 1 then
      hset[1], hset[2] = meeting_field, encode(NUMBER, unread - 1) .. string.sub(meeting, parties_at)
    else
      hdel[1] = meeting_field
      for party in string.gmatch(string.sub(meeting, parties_at), '%S+') do vdel[#vdel + 1] = BROUGHT_FIELD .. party end
    end
  end
end
