-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments, keys = ARGV, KEYS
local state, node, lease = keys[1], arguments[3], tonumber(arguments[4])
local id, player, properties = arguments[7], arguments[8], arguments[10]
local rating, timeout = tonumber(arguments[9]), tonumber(arguments[11])
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
local known
local concat, gmatch = table.concat, string.gmatch
repeat
  local stored = call('HGET', state, 't:' .. id)
  if not stored then
    known = nil
    break
  end
  local lines = {}
  for line in gmatch(stored, '([^\n]*)\n') do
    lines[#lines + 1] = line
  end
  local ticket = {id = id, state = lines[1], player = lines[2], properties = lines[3], rating = tonumber(lines[4])}
  if ticket.state == 'waiting' then
    ticket.owner, ticket.level, ticket.stamp = lines[5], tonumber(lines[6]), lines[7]
    ticket.joined, ticket.timeout = tonumber(lines[8]), tonumber(lines[9])
  else
    ticket.outcome = concat(lines, '\n', 5) .. '\n'
  end
  known = ticket
until true
if known then
  if known.player ~= player or known.rating ~= rating or known.properties ~= properties then
    return {'used'}
  end
  if not known.outcome then
    return {known.state, ''}
  end
  local untold = call('HGET', state, 'm:' .. string.match(known.outcome, '([^\n]*)\n'))
  return {known.state, known.outcome, untold or nil}
end
local other = call('HGET', state, 'p:' .. player)
if other then
  local waiting
  repeat
    local stored = call('HGET', state, 't:' .. other)
    if not stored then
      waiting = nil
      break
    end
    local lines = {}
    for line in gmatch(stored, '([^\n]*)\n') do
      lines[#lines + 1] = line
    end
    local ticket = {id = other, state = lines[1], player = lines[2], properties = lines[3], rating = tonumber(lines[4])}
    if ticket.state == 'waiting' then
      ticket.owner, ticket.level, ticket.stamp = lines[5], tonumber(lines[6]), lines[7]
      ticket.joined, ticket.timeout = tonumber(lines[8]), tonumber(lines[9])
    else
      ticket.outcome = concat(lines, '\n', 5) .. '\n'
    end
    waiting = ticket
  until true
  if waiting and waiting.state == 'waiting' then
    return {'conflict', other}
  end
end
local matchmaker_now, matchmaker_microseconds
local matchmaker_state, matchmaker_index, matchmaker_due, matchmaker_nodes, matchmaker_seed, matchmaker_retell,
  matchmaker_forget, matchmaker_outcomes, matchmaker_live = state, keys[2], keys[3], keys[4], arguments[2],
  tonumber(arguments[5]), tonumber(arguments[6]), {}, {[node] = true}
do
  local time = call('TIME')
  matchmaker_now = math.floor(time[1] * 1000 + time[2] / 1000)
  matchmaker_microseconds = time[1] * 1000000 + time[2]
end
local rules_size, rules_start, rules_step, rules_interval, rules_widest, rules_last_level
do
  local text = arguments[1]
  local size, start, step, interval, widest = string.match(text, '(%d+) (%d+) (%d+) (%d+) (%d+)')
  rules_size, rules_start, rules_step, rules_interval, rules_widest = tonumber(size), tonumber(start), tonumber(step),
    tonumber(interval), tonumber(widest)
  rules_last_level = rules_step > 0 and math.ceil((rules_widest - rules_start) / rules_step) or 0
end
if is_new then
  local rules = arguments[1]
  call('HSET', matchmaker_state, 'rules', rules)
  call('ZADD', matchmaker_index, '0', 'a')
  call('ZADD', matchmaker_due, '+inf', 'a')
end
local format = string.format
call('ZADD', matchmaker_nodes, format('%.0f', matchmaker_now + lease), node)
local stamp
do
  local last = tonumber(call('HGET', matchmaker_state, 'stamp') or 0)
  local stamp_2 = math.max(matchmaker_microseconds, last + 1)
  call('HSET', matchmaker_state, 'stamp', format('%.0f', stamp_2))
  stamp = format('%014x', stamp_2)
end
local ticket = {id = id, player = player, rating = rating, properties = properties, level = 0, stamp = stamp, joined =
  matchmaker_now, timeout = timeout > 0 and matchmaker_now + timeout or 0}
local outcome = nil
local min, sort, sub = math.min, table.sort, string.sub
while not outcome do
  local candidates
  do
    local prefix, level
    prefix, candidates, level = 'q' .. ticket.properties .. '\n', {}, 0
    while true do
      local narrowest = call('ZRANGEBYLEX', matchmaker_index, '[' .. prefix .. format('%02x', level), '(' .. prefix ..
        'g', 'LIMIT', '0', '1')[1]
      if not narrowest then
        break
      end
      level = tonumber(sub(narrowest, #prefix + 1, #prefix + 3 - 1), 16)
      do
        local width = min(rules_widest, rules_start + level * rules_step)
        local reach = min(min(rules_widest, rules_start + ticket.level * rules_step), width)
        local class = prefix .. format('%02x', level)
        local low, high = ticket.rating - reach + 4398046511104, ticket.rating + reach + 4398046511104
        local members = call('ZRANGEBYLEX', matchmaker_index, '[' .. class .. format('%012x', low), '[' .. class ..
          format('%012x', high) .. 'g', 'LIMIT', '0', 2 * rules_size)
        for _, member in ipairs(members) do
          local rest = sub(member, #prefix + 1)
          local owner, id_2 = sub(rest, 29, 44), sub(rest, 45)
          local lives
          do
            local live = matchmaker_live
            if live[owner] == nil then
              live[owner] = tonumber(call('ZSCORE', matchmaker_nodes, owner) or 0) > matchmaker_now
            end
            lives = live[owner]
          end
          if lives then
            local rating_2 = tonumber(sub(rest, 3, 14), 16) - 4398046511104
            candidates[#candidates + 1] = {id = id_2, member = member, rating = rating_2, width = width, limit =
              rating_2 + width, stamp = sub(rest, 15, 28)}
          else
            local ticket_2
            repeat
              local stored = call('HGET', matchmaker_state, 't:' .. id_2)
              if not stored then
                ticket_2 = nil
                break
              end
              local lines = {}
              for line in gmatch(stored, '([^\n]*)\n') do
                lines[#lines + 1] = line
              end
              local ticket_3 = {id = id_2, state = lines[1], player = lines[2], properties = lines[3], rating =
                tonumber(lines[4])}
              if ticket_3.state == 'waiting' then
                ticket_3.owner, ticket_3.level, ticket_3.stamp = lines[5], tonumber(lines[6]), lines[7]
                ticket_3.joined, ticket_3.timeout = tonumber(lines[8]), tonumber(lines[9])
              else
                ticket_3.outcome = concat(lines, '\n', 5) .. '\n'
              end
              ticket_2 = ticket_3
            until true
            if ticket_2 and ticket_2.owner then
              local tickets = {ticket_2}
              local id_3 = 'end-' .. id_2
              local lines = {id_3, 'lost'}
              for __2, ticket_3 in ipairs(tickets) do
                lines[#lines + 1] = ticket_3.id
                lines[#lines + 1] = ticket_3.player
                local number = ticket_3.rating
                lines[#lines + 1] = format('%.0f', number)
              end
              local outcome_2 = concat(lines, '\n') .. '\n'
              for __2, ticket_3 in ipairs(tickets) do
                if ticket_3.owner then
                  call('ZREM', matchmaker_index, 'q' .. ticket_3.properties .. '\n' .. format('%02x%012x',
                    ticket_3.level, ticket_3.rating + 4398046511104) .. ticket_3.stamp .. ticket_3.owner .. ticket_3.id,
                    'o' .. ticket_3.owner .. '\n' .. ticket_3.id)
                  call('ZREM', matchmaker_due, 't' .. ticket_3.id)
                  call('HDEL', matchmaker_state, 'p:' .. ticket_3.player)
                end
                call('HSET', matchmaker_state, 't:' .. ticket_3.id, 'lost\n' .. ticket_3.player .. '\n' ..
                  ticket_3.properties .. '\n' .. format('%.0f', ticket_3.rating) .. '\n' .. outcome_2)
                call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_forget), 'f' .. ticket_3.id)
              end
              call('HSET', matchmaker_state, 'm:' .. id_3, outcome_2)
              call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_retell), 'm' .. id_3)
              matchmaker_outcomes[#matchmaker_outcomes + 1] = outcome_2
            else
              call('ZREM', matchmaker_index, member)
            end
          end
        end
      end
      level = level + 1
    end
  end
  local group
  repeat
    local needed, best = rules_size - 1, nil
    if #candidates < needed then
      group = nil
      break
    end
    if needed == 1 then
      local oldest = candidates[1]
      for _, candidate in ipairs(candidates) do
        if candidate.stamp < oldest.stamp then
          oldest = candidate
        end
      end
      group = {oldest}
      break
    end
    local by_limit = {}
    for number, candidate in ipairs(candidates) do
      by_limit[number] = candidate
    end
    sort(candidates, function(one, other_2) return one.rating < other_2.rating end)
    sort(by_limit, function(one, other_2) return one.limit < other_2.limit end)
    local sweep_inside, sweep_count, sweep_next_in, sweep_next_out
    local sweep_by_rating, sweep_by_limit = candidates, by_limit
    for lowest = 0, #candidates do
      repeat
        local first = candidates[lowest]
        local best_2 = best
        local low = first and first.rating or ticket.rating
        if low > ticket.rating then
          best = best_2
          break
        end
        sweep_inside, sweep_count, sweep_next_in, sweep_next_out = {}, 0, 1, 1
        for highest = 0, #sweep_by_rating do
          local last = sweep_by_rating[highest]
          local high = last and last.rating or ticket.rating
          if high >= ticket.rating then
            do
              local by_rating, by_limit_2, inside = sweep_by_rating, sweep_by_limit, sweep_inside
              while by_rating[sweep_next_in] and by_rating[sweep_next_in].rating <= high do
                local candidate = by_rating[sweep_next_in]
                if candidate.rating >= low and candidate.rating - low <= candidate.width then
                  inside[candidate], sweep_count = true, sweep_count + 1
                end
                sweep_next_in = sweep_next_in + 1
              end
              while by_limit_2[sweep_next_out] and by_limit_2[sweep_next_out].limit < high do
                local candidate = by_limit_2[sweep_next_out]
                if inside[candidate] then
                  inside[candidate], sweep_count = nil, sweep_count - 1
                end
                sweep_next_out = sweep_next_out + 1
              end
            end
            if sweep_count >= needed and (not first or sweep_inside[first]) and (not last or sweep_inside[last]) then
              local group_2 = {}
              for _, candidate in ipairs(sweep_by_rating) do
                if sweep_inside[candidate] then
                  group_2[#group_2 + 1] = candidate
                end
              end
              sort(group_2, function(one, other_2) return one.stamp < other_2.stamp end)
              for number = #group_2, needed + 1, -1 do
                group_2[number] = nil
              end
              local better
              repeat
                if not best_2 then
                  better = true
                  break
                end
                local number = 1
                while number < #group_2 and group_2[number].stamp == best_2[number].stamp do
                  number = number + 1
                end
                better = group_2[number].stamp < best_2[number].stamp
              until true
              if better then
                best_2 = group_2
              end
            end
          end
        end
        best = best_2
      until true
    end
    group = best
  until true
  if not group then
    break
  end
  local tickets = {ticket}
  for _, candidate in ipairs(group) do
    local found
    repeat
      local id_2 = candidate.id
      local stored = call('HGET', matchmaker_state, 't:' .. id_2)
      if not stored then
        found = nil
        break
      end
      local lines = {}
      for line in gmatch(stored, '([^\n]*)\n') do
        lines[#lines + 1] = line
      end
      local ticket_2 = {id = id_2, state = lines[1], player = lines[2], properties = lines[3], rating =
        tonumber(lines[4])}
      if ticket_2.state == 'waiting' then
        ticket_2.owner, ticket_2.level, ticket_2.stamp = lines[5], tonumber(lines[6]), lines[7]
        ticket_2.joined, ticket_2.timeout = tonumber(lines[8]), tonumber(lines[9])
      else
        ticket_2.outcome = concat(lines, '\n', 5) .. '\n'
      end
      found = ticket_2
    until true
    if found and found.owner then
      tickets[#tickets + 1] = found
    else
      call('ZREM', matchmaker_index, candidate.member)
    end
  end
  if #tickets == rules_size then
    local stamp_2
    do
      local last = tonumber(call('HGET', matchmaker_state, 'stamp') or 0)
      local stamp_3 = math.max(matchmaker_microseconds, last + 1)
      call('HSET', matchmaker_state, 'stamp', format('%.0f', stamp_3))
      stamp_2 = format('%014x', stamp_3)
    end
    local id_2 = stamp_2 .. '-' .. matchmaker_seed
    local lines = {id_2, 'matched'}
    for _, ticket_2 in ipairs(tickets) do
      lines[#lines + 1] = ticket_2.id
      lines[#lines + 1] = ticket_2.player
      local number = ticket_2.rating
      lines[#lines + 1] = format('%.0f', number)
    end
    local outcome_2 = concat(lines, '\n') .. '\n'
    for _, ticket_2 in ipairs(tickets) do
      if ticket_2.owner then
        call('ZREM', matchmaker_index, 'q' .. ticket_2.properties .. '\n' .. format('%02x%012x', ticket_2.level,
          ticket_2.rating + 4398046511104) .. ticket_2.stamp .. ticket_2.owner .. ticket_2.id, 'o' .. ticket_2.owner ..
          '\n' .. ticket_2.id)
        call('ZREM', matchmaker_due, 't' .. ticket_2.id)
        call('HDEL', matchmaker_state, 'p:' .. ticket_2.player)
      end
      call('HSET', matchmaker_state, 't:' .. ticket_2.id, 'matched\n' .. ticket_2.player .. '\n' .. ticket_2.properties
        .. '\n' .. format('%.0f', ticket_2.rating) .. '\n' .. outcome_2)
      call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_forget), 'f' .. ticket_2.id)
    end
    call('HSET', matchmaker_state, 'm:' .. id_2, outcome_2)
    call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_retell), 'm' .. id_2)
    matchmaker_outcomes[#matchmaker_outcomes + 1] = outcome_2
    outcome = outcome_2
  end
end
if outcome then
  return {'matched', outcome, unpack(matchmaker_outcomes)}
end
ticket.owner = node
do
  call('HSET', matchmaker_state, 't:' .. ticket.id, 'waiting\n' .. ticket.player .. '\n' .. ticket.properties .. '\n' ..
    format('%.0f', ticket.rating) .. '\n' .. ticket.owner .. '\n' .. ticket.level .. '\n' .. ticket.stamp .. '\n' ..
    format('%.0f', ticket.joined) .. '\n' .. format('%.0f', ticket.timeout) .. '\n')
  call('ZADD', matchmaker_index, '0', 'q' .. ticket.properties .. '\n' .. format('%02x%012x', ticket.level,
    ticket.rating + 4398046511104) .. ticket.stamp .. ticket.owner .. ticket.id)
  local at = ticket.level < rules_last_level and ticket.joined + (ticket.level + 1) * rules_interval or nil
  if ticket.timeout > 0 then
    at = min(at or ticket.timeout, ticket.timeout)
  end
  if at then
    call('ZADD', matchmaker_due, format('%.0f', at), 't' .. ticket.id)
  else
    call('ZREM', matchmaker_due, 't' .. ticket.id)
  end
end
call('ZADD', matchmaker_index, '0', 'o' .. node .. '\n' .. id)
call('HSET', state, 'p:' .. player, id)
return {'waiting', '', unpack(matchmaker_outcomes)}
