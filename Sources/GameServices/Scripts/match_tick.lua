-- Does what is due: widens windows and searches again, ends tickets whose time is over or whose node is dead, and finds
-- outcomes that no node has sent. Renews the lease of the node, which keeps all of its tickets. Composed of match_head,
-- match_search and this file.
--
-- ARGV[7] the maximum number of steps
-- Reply: {ms until the next step, or -1; 1 if there is more to do now; number of outcomes that were given up; then each
--     outcome to tell}
local steps, given_up = tonumber(ARGV[7]), 0
call('ZADD', nodes, integer(now + lease), node)

local function widen(ticket)
  call('ZREM', index, member_of(ticket))
  ticket.level = min(last_level, max(ticket.level, floor((now - ticket.joined) / interval)))
  -- While it is not in the index.
  if not match(ticket) then store(ticket) end
end

local dead = call('ZRANGEBYSCORE', nodes, '-inf', integer(now), 'LIMIT', 0, 1)[1]
if dead then
  local members = call('ZRANGEBYLEX', index, '[o' .. dead .. '\n', '(o' .. dead .. '\11', 'LIMIT', 0, steps)
  for _, member in ipairs(members) do lose(sub(member, OWNER_SIZE + 3), member) end
  if #members < steps then call('ZREM', nodes, dead) end
  steps = steps - #members
end

local items = steps > 0 and call('ZRANGEBYSCORE', due, '-inf', integer(now), 'LIMIT', 0, steps) or {}
for _, item in ipairs(items) do
  local kind, id = sub(item, 1, 1), sub(item, 2)
  if kind == 't' then
    local ticket = read(id)
    -- An earlier step of this script may have ended it.
    if ticket and ticket.state == WAITING then
      if not is_live(ticket.owner) then
        finish({ticket}, LOST, 'end-' .. id)
      elseif ticket.timeout > 0 and ticket.timeout <= now then
        finish({ticket}, TIMED_OUT, 'end-' .. id)
      else
        widen(ticket)
      end
    else
      call('ZREM', due, item)
    end
  elseif kind == 'm' then
    local outcome = call('HGET', state, 'm:' .. id)
    -- The tickets are forgotten with it.
    local first = outcome and lines_of(outcome)[3]
    if outcome and call('HEXISTS', state, 't:' .. first) == 1 then
      call('ZADD', due, integer(now + retell), item)
      outcomes[#outcomes + 1] = outcome
    else
      given_up = given_up + call('HDEL', state, 'm:' .. id)
      call('ZREM', due, item)
    end
  else
    call('HDEL', state, 't:' .. id)
    call('ZREM', due, item)
  end
end
local first = call('ZRANGEBYSCORE', due, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local wait = first[2] and max(0, tonumber(first[2]) - now) or -1
return {integer(wait), (steps <= 0 or #items >= steps) and 1 or 0, given_up, unpack(outcomes)}
