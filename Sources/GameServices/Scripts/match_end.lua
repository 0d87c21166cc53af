-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments = ARGV
local state, id = KEYS[1], arguments[7]
local call = redis.call
do
  local rules = arguments[1]
  local stored = call('HGET', state, 'rules')
  if stored and stored ~= rules then
    return {'rules', stored}
  end
end
local ticket
repeat
  local stored = call('HGET', state, 't:' .. id)
  if not stored then
    ticket = nil
    break
  end
  local lines = {}
  for line in string.gmatch(stored, '([^\n]*)\n') do
    lines[#lines + 1] = line
  end
  local ticket_2 = {id = id, state = lines[1], player = lines[2], properties = lines[3], rating = tonumber(lines[4])}
  if ticket_2.state == 'waiting' then
    ticket_2.owner, ticket_2.level, ticket_2.stamp = lines[5], tonumber(lines[6]), lines[7]
    ticket_2.joined, ticket_2.timeout = tonumber(lines[8]), tonumber(lines[9])
  else
    ticket_2.outcome = table.concat(lines, '\n', 5) .. '\n'
  end
  ticket = ticket_2
until true
if not ticket then
  return {'none'}
end
if ticket.state == 'waiting' and arguments[8] == '1' then
  local matchmaker_now, matchmaker_microseconds
  local matchmaker_state, matchmaker_index, matchmaker_due, matchmaker_forget = state, KEYS[2], KEYS[3],
    tonumber(arguments[6])
  do
    local time = call('TIME')
    matchmaker_now = math.floor(time[1] * 1000 + time[2] / 1000)
    matchmaker_microseconds = time[1] * 1000000 + time[2]
  end
  local outcome
  local format = string.format
  do
    local tickets = {ticket}
    local id_2 = 'end-' .. id
    local lines = {id_2, 'cancelled'}
    for _, ticket_2 in ipairs(tickets) do
      lines[#lines + 1] = ticket_2.id
      lines[#lines + 1] = ticket_2.player
      local number = ticket_2.rating
      lines[#lines + 1] = format('%.0f', number)
    end
    outcome = table.concat(lines, '\n') .. '\n'
    for _, ticket_2 in ipairs(tickets) do
      if ticket_2.owner then
        call('ZREM', matchmaker_index, 'q' .. ticket_2.properties .. '\n' .. format('%02x%012x', ticket_2.level,
          ticket_2.rating + 4398046511104) .. ticket_2.stamp .. ticket_2.owner .. ticket_2.id, 'o' .. ticket_2.owner ..
          '\n' .. ticket_2.id)
        call('ZREM', matchmaker_due, 't' .. ticket_2.id)
        call('HDEL', matchmaker_state, 'p:' .. ticket_2.player)
      end
      call('HSET', matchmaker_state, 't:' .. ticket_2.id, 'cancelled\n' .. ticket_2.player .. '\n' ..
        ticket_2.properties .. '\n' .. format('%.0f', ticket_2.rating) .. '\n' .. outcome)
      call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_forget), 'f' .. ticket_2.id)
    end
  end
  return {'cancelled', outcome, ticket.properties}
end
return {ticket.state, ticket.outcome or '', ticket.properties}
