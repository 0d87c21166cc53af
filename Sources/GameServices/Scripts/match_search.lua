-- The search for a match of one ticket. A part of the scripts that bring a ticket or widen one.
--
-- A group is suitable when everyone is within everyone's window. Between two scripts no suitable group waits, because
-- each script changes one ticket at a time and then searches for a group with it. Therefore the search is exact and
-- bounded: of the tickets with a window of at least w, fewer than `size` are within any span of w, so at most
-- 2 (size - 1) tickets of each width can be in one group with a given ticket.

-- Returns the waiting tickets that are suitable together with `ticket`, each for itself. Ends those of dead nodes.
local function suitable_with(ticket)
  local prefix, width, found, level = 'q' .. ticket.properties .. '\n', width_of(ticket.level), {}, 0
  while true do
    -- The narrowest window from this level on.
    local first =
      call('ZRANGEBYLEX', index, '[' .. prefix .. format('%02x', level), '(' .. prefix .. 'g', 'LIMIT', 0, 1)[1]
    if not first then return found end
    level = tonumber(sub(first, #prefix + LEVEL_AT, #prefix + RATING_AT - 1), 16)
    local reach = min(width, width_of(level))
    local class = prefix .. format('%02x', level)
    local low, high = ticket.rating - reach + RATING_OFFSET, ticket.rating + reach + RATING_OFFSET
    local members = call('ZRANGEBYLEX', index, '[' .. class .. format('%012x', low),
      '[' .. class .. format('%012x', high) .. 'g', 'LIMIT', 0, 2 * size)
    for _, member in ipairs(members) do
      local rest = sub(member, #prefix + 1)
      local owner, id = sub(rest, OWNER_AT, TICKET_AT - 1), sub(rest, TICKET_AT)
      if is_live(owner) then
        local rating = tonumber(sub(rest, RATING_AT, STAMP_AT - 1), 16) - RATING_OFFSET
        found[#found + 1] = {id = id, member = member, rating = rating, width = width_of(level),
          limit = rating + width_of(level), stamp = sub(rest, STAMP_AT, OWNER_AT - 1)}
      else
        lose(id, member)
      end
    end
    level = level + 1
  end
end

local function is_older(one, other) return one.stamp < other.stamp end

-- Returns whether the members of a group, oldest first, have waited longer: the first difference decides.
local function is_better(group, best)
  if not best then return true end
  for number = 1, #group do
    if group[number].stamp ~= best[number].stamp then return group[number].stamp < best[number].stamp end
  end
  return false
end

-- Returns the suitable group of `ticket` and size - 1 others whose members have waited longest; nil if there is none.
--
-- For each lowest rating, the highest rating sweeps upwards. A member may be in the group while its window contains
-- both.
local function group_of(ticket, others)
  local needed, best = size - 1, nil
  if #others < needed then return nil end
  if needed == 1 then
    for _, other in ipairs(others) do if not best or is_older(other, best) then best = other end end
    return {best}
  end
  local by_limit = {}
  for number, other in ipairs(others) do by_limit[number] = other end
  table.sort(others, function(one, other) return one.rating < other.rating end)
  table.sort(by_limit, function(one, other) return one.limit < other.limit end)
  for lowest = 0, #others do
    local first = others[lowest]
    local low = first and first.rating or ticket.rating
    if low <= ticket.rating then
      local count, next_in, next_out, inside = 0, 1, 1, {}
      -- The ticket's own rating is the first highest rating; the others follow.
      for highest = 0, #others do
        local last = others[highest]
        local high = last and last.rating or ticket.rating
        if high >= ticket.rating then
          while others[next_in] and others[next_in].rating <= high do
            local other = others[next_in]
            if other.rating >= low and other.rating - low <= other.width then
              inside[other], count = true, count + 1
            end
            next_in = next_in + 1
          end
          while by_limit[next_out] and by_limit[next_out].limit < high do
            local other = by_limit[next_out]
            if inside[other] then inside[other], count = nil, count - 1 end
            next_out = next_out + 1
          end
          -- Each group is considered once, where the ratings are those of its members.
          if count >= needed and (not first or inside[first]) and (not last or inside[last]) then
            local group = {}
            for _, other in ipairs(others) do if inside[other] then group[#group + 1] = other end end
            table.sort(group, is_older)
            for number = #group, needed + 1, -1 do group[number] = nil end
            if is_better(group, best) then best = group end
          end
        end
      end
    end
  end
  return best
end

-- Matches a ticket that is not in the index. Returns the outcome, or nil if there is no suitable group.
local function match(ticket)
  while true do
    local group = group_of(ticket, suitable_with(ticket))
    if not group then return nil end
    local tickets = {ticket}
    for _, other in ipairs(group) do
      local found = read(other.id)
      if found and found.owner then tickets[#tickets + 1] = found else call('ZREM', index, other.member) end
    end
    -- Otherwise Redis has lost a record, and the search is repeated without it.
    if #tickets == size then return finish(tickets, MATCHED, next_stamp() .. '-' .. seed) end
  end
end
