-- The search for a match of one ticket, which is new or whose window has widened.
--
-- A group is suitable if the rating of each member is within the windows of all members. Between two scripts no
-- suitable group waits, because each script changes one ticket at a time and then searches for a group with it.
-- Therefore the search is exact and bounded: of the tickets with a window of at least w, fewer than `size` are within
-- any span of w, so at most 2 (size - 1) tickets of each width can be in one group with a given ticket.

-- The positions of the fields of a member of the index, after 'q' PROPERTIES '\n'.
local LEVEL_AT, RATING_AT, STAMP_AT, OWNER_AT, TICKET_AT = 1, 3, 15, 29, 45

-- A sweep through the candidates, for a fixed lowest and a rising highest rating. A candidate is a table: id, rating,
-- width of its window, limit (the highest rating in its window), stamp, and member (of the index).
local Sweep = record {
  also = {
    'by_rating', 'by_limit',  -- the candidates in two orders
    'inside',                 -- set of those whose windows contain both ratings
    'count',                  -- the size of `inside`
    'next_in', 'next_out',    -- positions of the next candidates in by_rating and by_limit
  },
}

-- Returns the width of a window after `level` widenings.
local function find_width(rules, level)
  return math.min(rules.widest, rules.start + level * rules.step)
end

-- Returns the member of the index of a waiting ticket with the lowest level that is at least `level`; nil if there is
-- none.
local function find_narrowest(index, prefix, level)
  return redis.call('ZRANGEBYLEX', index, '[' .. prefix .. string.format('%02x', level), '(' .. prefix .. 'g',
    'LIMIT', 0, 1)[1]
end

-- Adds the tickets of one level that could form a pair with `ticket` to the candidates. Ends tickets of dead nodes.
local function add_candidates(matchmaker, rules, ticket, prefix, level, candidates)
  local width = find_width(rules, level)
  local reach = math.min(find_width(rules, ticket.level), width)
  local class = prefix .. string.format('%02x', level)
  local low, high = ticket.rating - reach + RATING_OFFSET, ticket.rating + reach + RATING_OFFSET
  local members = redis.call('ZRANGEBYLEX', matchmaker.index, '[' .. class .. string.format('%012x', low),
    '[' .. class .. string.format('%012x', high) .. 'g', 'LIMIT', 0, 2 * rules.size)
  for _, member in ipairs(members) do
    local rest = string.sub(member, #prefix + 1)
    local owner, id = string.sub(rest, OWNER_AT, TICKET_AT - 1), string.sub(rest, TICKET_AT)
    local lives = is_live(matchmaker, owner)
    if lives then
      local rating = tonumber(string.sub(rest, RATING_AT, STAMP_AT - 1), 16) - RATING_OFFSET
      candidates[#candidates + 1] = {
        id = id, member = member, rating = rating, width = width, limit = rating + width,
        stamp = string.sub(rest, STAMP_AT, OWNER_AT - 1),
      }
    else
      lose_ticket(matchmaker, id, member)
    end
  end
end

-- Returns the waiting tickets that could form a pair with `ticket`.
local function find_candidates(matchmaker, rules, ticket)
  local prefix, candidates, level = 'q' .. ticket.properties .. '\n', {}, 0
  while true do
    local narrowest = find_narrowest(matchmaker.index, prefix, level)
    if not narrowest then break end
    level = tonumber(string.sub(narrowest, #prefix + LEVEL_AT, #prefix + RATING_AT - 1), 16)
    add_candidates(matchmaker, rules, ticket, prefix, level, candidates)
    level = level + 1
  end
  return candidates
end

-- Returns whether a candidate has waited longer than another one.
local function is_older(one, other)
  return one.stamp < other.stamp
end

-- Returns whether a candidate's rating is lower than that of another one.
local function is_lower(one, other)
  return one.rating < other.rating
end

-- Returns whether a candidate's window ends before that of another one.
local function has_lower_limit(one, other)
  return one.limit < other.limit
end

-- Returns whether a group is better than another one, or there is no other. Both are sorted, oldest first: in the first
-- position where they differ, the better group has the older member.
local function is_better(group, best)
  if not best then return true end
  local number = 1
  while number < #group and group[number].stamp == best[number].stamp do number = number + 1 end
  return group[number].stamp < best[number].stamp
end

-- Returns the candidate that has waited longest.
local function find_oldest(candidates)
  local oldest = candidates[1]
  for _, candidate in ipairs(candidates) do
    if candidate.stamp < oldest.stamp then oldest = candidate end
  end
  return oldest
end

-- Returns the `needed` candidates inside a sweep that have waited longest, oldest first.
local function choose_oldest(sweep, needed)
  local group = {}
  for _, candidate in ipairs(sweep.by_rating) do
    if sweep.inside[candidate] then group[#group + 1] = candidate end
  end
  table.sort(group, is_older)
  for number = #group, needed + 1, -1 do group[number] = nil end
  return group
end

-- Moves the highest rating of a sweep up to `high`.
local function raise_sweep(sweep, low, high)
  local by_rating, by_limit, inside = sweep.by_rating, sweep.by_limit, sweep.inside
  while by_rating[sweep.next_in] and by_rating[sweep.next_in].rating <= high do
    local candidate = by_rating[sweep.next_in]
    if candidate.rating >= low and candidate.rating - low <= candidate.width then
      inside[candidate], sweep.count = true, sweep.count + 1
    end
    sweep.next_in = sweep.next_in + 1
  end
  while by_limit[sweep.next_out] and by_limit[sweep.next_out].limit < high do
    local candidate = by_limit[sweep.next_out]
    if inside[candidate] then inside[candidate], sweep.count = nil, sweep.count - 1 end
    sweep.next_out = sweep.next_out + 1
  end
end

-- Returns the better of `best` and the best group whose lowest rating is that of `first`, or that of the ticket if
-- there is no `first`.
local function improve_group(sweep, ticket, first, needed, best)
  local low = first and first.rating or ticket.rating
  if low > ticket.rating then return best end
  sweep.inside, sweep.count, sweep.next_in, sweep.next_out = {}, 0, 1, 1
  -- The ticket's own rating is the first highest rating; the others follow.
  for highest = 0, #sweep.by_rating do
    local last = sweep.by_rating[highest]
    local high = last and last.rating or ticket.rating
    if high >= ticket.rating then
      raise_sweep(sweep, low, high)
      -- Each group is considered once, where the ratings are those of its members.
      if sweep.count >= needed and (not first or sweep.inside[first]) and (not last or sweep.inside[last]) then
        local group = choose_oldest(sweep, needed)
        local better = is_better(group, best)
        if better then best = group end
      end
    end
  end
  return best
end

-- Returns the size - 1 candidates that have waited longest and form a suitable group with `ticket`; nil if there are
-- none. For each lowest rating, the highest rating sweeps upwards: the candidates inside are those whose windows
-- contain both.
local function find_group(rules, ticket, candidates)
  local needed, best = rules.size - 1, nil
  if #candidates < needed then return nil end
  if needed == 1 then
    local oldest = find_oldest(candidates)
    return {oldest}
  end
  local by_limit = {}
  for number, candidate in ipairs(candidates) do by_limit[number] = candidate end
  table.sort(candidates, is_lower)
  table.sort(by_limit, has_lower_limit)
  local sweep = Sweep.new({by_rating = candidates, by_limit = by_limit})
  for lowest = 0, #candidates do
    best = improve_group(sweep, ticket, candidates[lowest], needed, best)
  end
  return best
end

-- Returns the tickets of a group, beginning with `ticket`. Those whose records Redis has lost are missing, and their
-- members are removed from the index.
local function read_group(matchmaker, ticket, group)
  local tickets = {ticket}
  for _, candidate in ipairs(group) do
    local found = read_ticket(matchmaker.state, candidate.id)
    if found and found.owner then
      tickets[#tickets + 1] = found
    else
      redis.call('ZREM', matchmaker.index, candidate.member)
    end
  end
  return tickets
end

-- Matches a ticket that is not in the index. Returns the outcome, or nil if there is no suitable group.
local function match_ticket(matchmaker, rules, ticket)
  local outcome = nil
  while not outcome do
    local candidates = find_candidates(matchmaker, rules, ticket)
    local group = find_group(rules, ticket, candidates)
    if not group then break end
    local tickets = read_group(matchmaker, ticket, group)
    -- Otherwise Redis has lost a record, and the search is repeated without it.
    if #tickets == rules.size then
      local stamp = take_stamp(matchmaker)
      outcome = end_tickets(matchmaker, tickets, MATCHED, stamp .. '-' .. matchmaker.seed)
    end
  end
  return outcome
end
