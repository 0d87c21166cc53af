-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments, call, keys = ARGV, redis.call, KEYS
do
  local state = keys[1]
  local rules = arguments[1]
  local stored = call('HGET', state, 'rules')
  if stored and stored ~= rules then
    return {'rules', stored}
  end
end
local found = {}
for number = 7, #arguments do
  local ticket
  repeat
    local state = keys[1]
    local id = arguments[number]
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
  found[number - 6] = not ticket and 0 or ticket.state == 'waiting' and 1 or 2
end
return found
