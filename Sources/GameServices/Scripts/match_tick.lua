-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments, keys = ARGV, KEYS
local state, due, node = keys[1], keys[3], arguments[3]
local call = redis.call
do
  local rules = arguments[1]
  local stored = call('HGET', state, 'rules')
  if stored and stored ~= rules then
    return {'rules', stored}
  end
end
local rules_size, rules_start, rules_step, rules_interval, rules_widest, rules_last_level
do
  local text = arguments[1]
  local size, start, step, interval, widest = string.match(text, '(%d+) (%d+) (%d+) (%d+) (%d+)')
  rules_size, rules_start, rules_step, rules_interval, rules_widest = tonumber(size), tonumber(start), tonumber(step),
    tonumber(interval), tonumber(widest)
  rules_last_level = rules_step > 0 and math.ceil((rules_widest - rules_start) / rules_step) or 0
end
local matchmaker_now, matchmaker_microseconds
local matchmaker_state, matchmaker_index, matchmaker_due, matchmaker_nodes, matchmaker_seed, matchmaker_retell,
  matchmaker_forget, matchmaker_outcomes, matchmaker_live = state, keys[2], due, keys[4], arguments[2],
  tonumber(arguments[5]), tonumber(arguments[6]), {}, {[node] = true}
do
  local time = call('TIME')
  matchmaker_now = math.floor(time[1] * 1000 + time[2] / 1000)
  matchmaker_microseconds = time[1] * 1000000 + time[2]
end
local now = matchmaker_now
local format = string.format
call('ZADD', matchmaker_nodes, format('%.0f', now + tonumber(arguments[4])), node)
local steps
local concat, gmatch, sub = table.concat, string.gmatch, string.sub
repeat
  local steps_2 = tonumber(arguments[7])
  local dead = call('ZRANGEBYSCORE', matchmaker_nodes, '-inf', format('%.0f', matchmaker_now), 'LIMIT', '0', '1')[1]
  if not dead then
    steps = steps_2
    break
  end
  local prefix = 'o' .. dead .. '\n'
  local members = call('ZRANGEBYLEX', matchmaker_index, '[' .. prefix, '(o' .. dead .. '\v', 'LIMIT', '0', steps_2)
  for _, member in ipairs(members) do
    local id = sub(member, #prefix + 1)
    local ticket
    repeat
      local stored = call('HGET', matchmaker_state, 't:' .. id)
      if not stored then
        ticket = nil
        break
      end
      local lines = {}
      for line in gmatch(stored, '([^\n]*)\n') do
        lines[#lines + 1] = line
      end
      local ticket_2 = {id = id, state = lines[1], player = lines[2], properties = lines[3], rating =
        tonumber(lines[4])}
      if ticket_2.state == 'waiting' then
        ticket_2.owner, ticket_2.level, ticket_2.stamp = lines[5], tonumber(lines[6]), lines[7]
        ticket_2.joined, ticket_2.timeout = tonumber(lines[8]), tonumber(lines[9])
      else
        ticket_2.outcome = concat(lines, '\n', 5) .. '\n'
      end
      ticket = ticket_2
    until true
    if ticket and ticket.owner then
      local tickets = {ticket}
      local id_2 = 'end-' .. id
      local lines = {id_2, 'lost'}
      for __2, ticket_2 in ipairs(tickets) do
        lines[#lines + 1] = ticket_2.id
        lines[#lines + 1] = ticket_2.player
        local number = ticket_2.rating
        lines[#lines + 1] = format('%.0f', number)
      end
      local outcome = concat(lines, '\n') .. '\n'
      for __2, ticket_2 in ipairs(tickets) do
        if ticket_2.owner then
          call('ZREM', matchmaker_index, 'q' .. ticket_2.properties .. '\n' .. format('%02x%012x', ticket_2.level,
            ticket_2.rating + 4398046511104) .. ticket_2.stamp .. ticket_2.owner .. ticket_2.id, 'o' .. ticket_2.owner
            .. '\n' .. ticket_2.id)
          call('ZREM', matchmaker_due, 't' .. ticket_2.id)
          call('HDEL', matchmaker_state, 'p:' .. ticket_2.player)
        end
        call('HSET', matchmaker_state, 't:' .. ticket_2.id, 'lost\n' .. ticket_2.player .. '\n' .. ticket_2.properties
          .. '\n' .. format('%.0f', ticket_2.rating) .. '\n' .. outcome)
        call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_forget), 'f' .. ticket_2.id)
      end
      call('HSET', matchmaker_state, 'm:' .. id_2, outcome)
      call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_retell), 'm' .. id_2)
      matchmaker_outcomes[#matchmaker_outcomes + 1] = outcome
    else
      call('ZREM', matchmaker_index, member)
    end
  end
  if #members < steps_2 then
    call('ZREM', matchmaker_nodes, dead)
  end
  steps = steps_2 - #members
until true
local items, given_up = {}, 0
if steps > 0 then
  items = call('ZRANGEBYSCORE', due, '-inf', format('%.0f', now), 'LIMIT', '0', steps)
end
local min = math.min
for _, item in ipairs(items) do
  local kind, id = sub(item, 1, 1), sub(item, 2)
  if kind == 't' then
    repeat
      local ticket
      repeat
        local stored = call('HGET', matchmaker_state, 't:' .. id)
        if not stored then
          ticket = nil
          break
        end
        local lines = {}
        for line in gmatch(stored, '([^\n]*)\n') do
          lines[#lines + 1] = line
        end
        local ticket_2 = {id = id, state = lines[1], player = lines[2], properties = lines[3], rating =
          tonumber(lines[4])}
        if ticket_2.state == 'waiting' then
          ticket_2.owner, ticket_2.level, ticket_2.stamp = lines[5], tonumber(lines[6]), lines[7]
          ticket_2.joined, ticket_2.timeout = tonumber(lines[8]), tonumber(lines[9])
        else
          ticket_2.outcome = concat(lines, '\n', 5) .. '\n'
        end
        ticket = ticket_2
      until true
      if not ticket or ticket.state ~= 'waiting' then
        call('ZREM', matchmaker_due, item)
        break
      end
      local lives
      do
        local node_2 = ticket.owner
        local live = matchmaker_live
        if live[node_2] == nil then
          live[node_2] = tonumber(call('ZSCORE', matchmaker_nodes, node_2) or 0) > matchmaker_now
        end
        lives = live[node_2]
      end
      local is_over = ticket.timeout > 0 and ticket.timeout <= matchmaker_now
      if not lives or is_over then
        local tickets = {ticket}
        local reason = lives and 'timedOut' or 'lost'
        local id_2 = 'end-' .. id
        local lines = {id_2, reason}
        for __2, ticket_2 in ipairs(tickets) do
          lines[#lines + 1] = ticket_2.id
          lines[#lines + 1] = ticket_2.player
          local number = ticket_2.rating
          lines[#lines + 1] = format('%.0f', number)
        end
        local outcome = concat(lines, '\n') .. '\n'
        for __2, ticket_2 in ipairs(tickets) do
          if ticket_2.owner then
            call('ZREM', matchmaker_index, 'q' .. ticket_2.properties .. '\n' .. format('%02x%012x', ticket_2.level,
              ticket_2.rating + 4398046511104) .. ticket_2.stamp .. ticket_2.owner .. ticket_2.id, 'o' .. ticket_2.owner
              .. '\n' .. ticket_2.id)
            call('ZREM', matchmaker_due, 't' .. ticket_2.id)
            call('HDEL', matchmaker_state, 'p:' .. ticket_2.player)
          end
          call('HSET', matchmaker_state, 't:' .. ticket_2.id, reason .. '\n' .. ticket_2.player .. '\n' ..
            ticket_2.properties .. '\n' .. format('%.0f', ticket_2.rating) .. '\n' .. outcome)
          call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_forget), 'f' .. ticket_2.id)
        end
        if reason ~= 'cancelled' then
          call('HSET', matchmaker_state, 'm:' .. id_2, outcome)
          call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_retell), 'm' .. id_2)
          matchmaker_outcomes[#matchmaker_outcomes + 1] = outcome
        end
      else
        call('ZREM', matchmaker_index, 'q' .. ticket.properties .. '\n' .. format('%02x%012x', ticket.level,
          ticket.rating + 4398046511104) .. ticket.stamp .. ticket.owner .. ticket.id)
        local level = math.floor((matchmaker_now - ticket.joined) / rules_interval)
        ticket.level = min(rules_last_level, math.max(ticket.level, level))
        local outcome = nil
        local sort = table.sort
        while not outcome do
          local candidates
          do
            local prefix, level_2
            prefix, candidates, level_2 = 'q' .. ticket.properties .. '\n', {}, 0
            while true do
              local narrowest = call('ZRANGEBYLEX', matchmaker_index, '[' .. prefix .. format('%02x', level_2), '(' ..
                prefix .. 'g', 'LIMIT', '0', '1')[1]
              if not narrowest then
                break
              end
              level_2 = tonumber(sub(narrowest, #prefix + 1, #prefix + 3 - 1), 16)
              do
                local width = min(rules_widest, rules_start + level_2 * rules_step)
                local reach = min(min(rules_widest, rules_start + ticket.level * rules_step), width)
                local class = prefix .. format('%02x', level_2)
                local low, high = ticket.rating - reach + 4398046511104, ticket.rating + reach + 4398046511104
                local members = call('ZRANGEBYLEX', matchmaker_index, '[' .. class .. format('%012x', low), '[' .. class
                  .. format('%012x', high) .. 'g', 'LIMIT', '0', 2 * rules_size)
                for __2, member in ipairs(members) do
                  local rest = sub(member, #prefix + 1)
                  local owner, id_2 = sub(rest, 29, 44), sub(rest, 45)
                  local lives_2
                  do
                    local live = matchmaker_live
                    if live[owner] == nil then
                      live[owner] = tonumber(call('ZSCORE', matchmaker_nodes, owner) or 0) > matchmaker_now
                    end
                    lives_2 = live[owner]
                  end
                  if lives_2 then
                    local rating = tonumber(sub(rest, 3, 14), 16) - 4398046511104
                    candidates[#candidates + 1] = {id = id_2, member = member, rating = rating, width = width, limit =
                      rating + width, stamp = sub(rest, 15, 28)}
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
                      for __3, ticket_3 in ipairs(tickets) do
                        lines[#lines + 1] = ticket_3.id
                        lines[#lines + 1] = ticket_3.player
                        local number = ticket_3.rating
                        lines[#lines + 1] = format('%.0f', number)
                      end
                      local outcome_2 = concat(lines, '\n') .. '\n'
                      for __3, ticket_3 in ipairs(tickets) do
                        if ticket_3.owner then
                          call('ZREM', matchmaker_index, 'q' .. ticket_3.properties .. '\n' .. format('%02x%012x',
                            ticket_3.level, ticket_3.rating + 4398046511104) .. ticket_3.stamp .. ticket_3.owner ..
                            ticket_3.id, 'o' .. ticket_3.owner .. '\n' .. ticket_3.id)
                          call('ZREM', matchmaker_due, 't' .. ticket_3.id)
                          call('HDEL', matchmaker_state, 'p:' .. ticket_3.player)
                        end
                        call('HSET', matchmaker_state, 't:' .. ticket_3.id, 'lost\n' .. ticket_3.player .. '\n' ..
                          ticket_3.properties .. '\n' .. format('%.0f', ticket_3.rating) .. '\n' .. outcome_2)
                        call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_forget), 'f' ..
                          ticket_3.id)
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
              level_2 = level_2 + 1
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
              for __2, candidate in ipairs(candidates) do
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
            sort(candidates, function(one, other) return one.rating < other.rating end)
            sort(by_limit, function(one, other) return one.limit < other.limit end)
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
                    if sweep_count >= needed and (not first or sweep_inside[first]) and (not last or sweep_inside[last])
                      then
                      local group_2 = {}
                      for __2, candidate in ipairs(sweep_by_rating) do
                        if sweep_inside[candidate] then
                          group_2[#group_2 + 1] = candidate
                        end
                      end
                      sort(group_2, function(one, other) return one.stamp < other.stamp end)
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
          for __2, candidate in ipairs(group) do
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
            local stamp
            do
              local last = tonumber(call('HGET', matchmaker_state, 'stamp') or 0)
              local stamp_2 = math.max(matchmaker_microseconds, last + 1)
              call('HSET', matchmaker_state, 'stamp', format('%.0f', stamp_2))
              stamp = format('%014x', stamp_2)
            end
            local id_2 = stamp .. '-' .. matchmaker_seed
            local lines = {id_2, 'matched'}
            for __2, ticket_2 in ipairs(tickets) do
              lines[#lines + 1] = ticket_2.id
              lines[#lines + 1] = ticket_2.player
              local number = ticket_2.rating
              lines[#lines + 1] = format('%.0f', number)
            end
            local outcome_2 = concat(lines, '\n') .. '\n'
            for __2, ticket_2 in ipairs(tickets) do
              if ticket_2.owner then
                call('ZREM', matchmaker_index, 'q' .. ticket_2.properties .. '\n' .. format('%02x%012x', ticket_2.level,
                  ticket_2.rating + 4398046511104) .. ticket_2.stamp .. ticket_2.owner .. ticket_2.id, 'o' ..
                  ticket_2.owner .. '\n' .. ticket_2.id)
                call('ZREM', matchmaker_due, 't' .. ticket_2.id)
                call('HDEL', matchmaker_state, 'p:' .. ticket_2.player)
              end
              call('HSET', matchmaker_state, 't:' .. ticket_2.id, 'matched\n' .. ticket_2.player .. '\n' ..
                ticket_2.properties .. '\n' .. format('%.0f', ticket_2.rating) .. '\n' .. outcome_2)
              call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_forget), 'f' .. ticket_2.id)
            end
            call('HSET', matchmaker_state, 'm:' .. id_2, outcome_2)
            call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_retell), 'm' .. id_2)
            matchmaker_outcomes[#matchmaker_outcomes + 1] = outcome_2
            outcome = outcome_2
          end
        end
        if not outcome then
          call('HSET', matchmaker_state, 't:' .. ticket.id, 'waiting\n' .. ticket.player .. '\n' .. ticket.properties ..
            '\n' .. format('%.0f', ticket.rating) .. '\n' .. ticket.owner .. '\n' .. ticket.level .. '\n' ..
            ticket.stamp .. '\n' .. format('%.0f', ticket.joined) .. '\n' .. format('%.0f', ticket.timeout) .. '\n')
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
      end
    until true
  elseif kind == 'm' then
    local count
    repeat
      local outcome = call('HGET', matchmaker_state, 'm:' .. id)
      local first = outcome and string.match(outcome, '[^\n]*\n[^\n]*\n([^\n]*)\n')
      if outcome and call('HEXISTS', matchmaker_state, 't:' .. first) == 1 then
        call('ZADD', matchmaker_due, format('%.0f', matchmaker_now + matchmaker_retell), item)
        matchmaker_outcomes[#matchmaker_outcomes + 1] = outcome
        count = 0
        break
      end
      local given_up_2 = call('HDEL', matchmaker_state, 'm:' .. id)
      call('ZREM', matchmaker_due, item)
      count = given_up_2
    until true
    given_up = given_up + count
  else
    call('HDEL', state, 't:' .. id)
    call('ZREM', due, item)
  end
end
local first = call('ZRANGEBYSCORE', due, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', '0', '1')
local wait = first[2] and math.max(0, tonumber(first[2]) - now) or -1
local has_more = (steps <= 0 or #items >= steps) and 1 or 0
return {format('%.0f', wait), has_more, given_up, unpack(matchmaker_outcomes)}
