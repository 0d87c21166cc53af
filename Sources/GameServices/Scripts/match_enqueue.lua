-- Adds a ticket, and matches it if there is a suitable group. Composed of match_head, match_search and this file.
--
-- ARGV[7] ticket, [8] player, [9] rating, [10] properties, [11] ms until the timeout; 0: none
-- Reply: {state of the ticket, '' or its outcome, then each outcome to tell}. {'conflict', ticket}: the player waits
--     with another ticket. {'used'}: the ticket's id was used for something else.
local id, player, rating, properties, timeout = ARGV[7], ARGV[8], tonumber(ARGV[9]), ARGV[10], tonumber(ARGV[11])
local ticket = read(id)
if ticket then
  if ticket.player ~= player or ticket.rating ~= rating or ticket.properties ~= properties then return {'used'} end
  if ticket.outcome then
    local untold = call('HGET', state, 'm:' .. lines_of(ticket.outcome)[1])
    return {ticket.state, ticket.outcome, untold or nil}
  end
  return {ticket.state, ''}
end
local other = call('HGET', state, 'p:' .. player)
if other and (read(other) or {}).state == WAITING then return {'conflict', other} end

if not stored_rules then
  call('HSET', state, 'rules', rules)
  call('ZADD', index, 0, GUARD)
  call('ZADD', due, '+inf', GUARD)
end
call('ZADD', nodes, integer(now + lease), node)
ticket = {id = id, player = player, rating = rating, properties = properties, level = 0, stamp = next_stamp(),
  joined = now, timeout = timeout > 0 and now + timeout or 0}
local outcome = match(ticket)
if not outcome then
  ticket.owner = node
  store(ticket)
  call('ZADD', index, 0, 'o' .. node .. '\n' .. id)
  call('HSET', state, 'p:' .. player, id)
end
return {outcome and MATCHED or WAITING, outcome or '', unpack(outcomes)}
