-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments, keys = ARGV, KEYS
local state, id, reason = keys[1], arguments[7], arguments[8]
local is_new
local call = redis.call
do
  local rules = arguments[1]
  local stored = call('HGET', state, 'rules')
  if stored and stored ~= rules then
    return {'rules', stored}
  end
  is_new = not stored
end
local matchmaker_now, matchmaker_microseconds
local matchmaker_state, matchmaker_index, matchmaker_due, matchmaker_retell, matchmaker_forget, matchmaker_outcomes =
  state, keys[2], keys[3], tonumber(arguments[5]), tonumber(arguments[6]), {}
do
  local time = call('TIME')
  matchmaker_now = math.floor(time[1] * 1000 + time[2] / 1000)
  matchmaker_microseconds = time[1] * 1000000 + time[2]
end
local tickets, is_missing = {}, false
for at = 10, #arguments, 3 do
  local ticket
  repeat
    local id_2 = arguments[at]
    local stored = call('HGET', state, 't:' .. id_2)
    if not stored then
      ticket = nil
      break
    end
    local lines = {}
    for line in string.gmatch(stored, '([^\n]*)\n') do
      lines[#lines + 1] = line
    end
    local ticket_2 = {id = id_2, state = lines[1], player = lines[2], properties = lines[3], rating =
      tonumber(lines[4])}
    if ticket_2.state == 'waiting' then
      ticket_2.owner, ticket_2.level, ticket_2.stamp = lines[5], tonumber(lines[6]), lines[7]
      ticket_2.joined, ticket_2.timeout = tonumber(lines[8]), tonumber(lines[9])
    else
      ticket_2.outcome = table.concat(lines, '\n', 5) .. '\n'
    end
    ticket = ticket_2
  until true
  if ticket and ticket.outcome and string.match(ticket.outcome, '[^\n]*\n[^\n]*') ~= id .. '\n' .. reason then
    return {'other', ticket.id}
  end
  if not ticket or not ticket.outcome then
    is_missing = true
  end
  tickets[#tickets + 1] = ticket or {id = arguments[at], player = arguments[at + 1], rating = tonumber(arguments[at +
    2]), properties = arguments[9]}
end
if not is_missing then
  return {0}
end
if is_new then
  local rules = arguments[1]
  call('HSET', matchmaker_state, 'rules', rules)
  call('ZADD', matchmaker_index, '0', 'a')
  call('ZADD', matchmaker_due, '+inf', 'a')
end
local format = string.format
do
  local lines = {id, reason}
  for _, ticket in ipairs(tickets) do
    lines[#lines + 1] = ticket.id
    lines[#lines + 1] = ticket.player
    local number = ticket.rating
    lines[#lines + 1] = format('%.0f', number)
  end
  local outcome = table.concat(lines, '\n') .. '\n'
  for _, ticket in ipairs(tickets) do
    if ticket.owner then
      call('ZREM', matchmaker_index, 'q' .. ticket.properties .. '\n' .. format('%02x%012x', ticket.level, ticket.rating
        + 4398046511104) .. ticket.stamp .. ticket.owner .. ticket.id, 'o' .. ticket.owner .. '\n' .. ticket.id)
      call('ZREM', matchmaker_due, 't' .. ticket.id)
      call('HDEL', matchmaker_state, 'p:' .. ticket.player)
    end
    call('HSET', matchmaker_state, 't:' .. ticket.id, reason .. '\n' .. ticket.player .. '\n' .. ticket.properties ..
      '\n' .. format('%.0f', ticket.rating) .. '\n' .. outcome)
    call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_forget), 'f' .. ticket.id)
  end
  if reason ~= 'cancelled' then
    call('HSET', matchmaker_state, 'm:' .. id, outcome)
    call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_retell), 'm' .. id)
    matchmaker_outcomes[#matchmaker_outcomes + 1] = outcome
  end
end
return {1}
