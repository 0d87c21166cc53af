-- The search for a match of one ticket, which is new or whose window has widened.
--
-- A group is suitable when everyone is within everyone's window. Between two scripts no suitable group waits, because
-- each script changes one ticket at a time and then searches for a group with it. Therefore the search is exact and
-- bounded: of the tickets with a window of at least w, fewer than `size` are within any span of w, so at most
-- 2 (size - 1) tickets of each width can be in one group with a given ticket.

-- Where the parts of a member of the index begin, behind 'q' PROPERTIES '\n'.
local LEVEL_AT, RATING_AT, STAMP_AT, OWNER_AT, TICKET_AT = 1, 3, 15, 29, 45

-- A sweep through the candidates: those that are near enough to a lowest and to a rising highest rating. A candidate
-- is a table: id, rating, width of its window, `limit`, the highest rating in its window, stamp, and member of the
-- index.
local Sweep = record {
  also = {
    'by_rating', 'by_limit',  -- the candidates in two orders
    'inside',                 -- set of those whose windows contain both ratings
    'count',                  -- their number
    'next_in', 'next_out',    -- numbers of the first candidates, by rating and by limit, that were not looked at yet
  },
}

-- Returns the width of a window after `level` widenings.
local function find_width(rules, level)
  return math.min(rules.widest, rules.start + level * rules.step)
end

-- Returns the waiting ticket with the narrowest window from `level` on, as its member of the index; nil if there is
-- none.
local function find_narrowest(index, prefix, level)
  return redis.call('ZRANGEBYLEX', index, '[' .. prefix .. string.format('%02x', level), '(' .. prefix .. 'g',
    'LIMIT', 0, 1)[1]
end

-- Adds the tickets of one level that are suitable together with `ticket`, each for itself, to the candidates. Ends
-- those of dead nodes.
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

-- Returns the waiting tickets that are suitable together with `ticket`, each for itself.
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
local function ends_lower(one, other)
  return one.limit < other.limit
end

-- Returns whether the members of a group, oldest first, have waited longer: the first difference decides.
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

-- Returns the members of a sweep that have waited longest, oldest first.
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

-- Returns the best group whose lowest rating is that of `first`, or without it the ticket's, if it is better than
-- `best`; else `best`.
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

-- Returns the suitable group of `ticket` and size - 1 candidates whose members have waited longest, without the
-- ticket; nil if there is none. For each lowest rating, the highest rating sweeps upwards. A member may be in the
-- group while its window contains both.
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
  table.sort(by_limit, ends_lower)
  local sweep = Sweep.new({by_rating = candidates, by_limit = by_limit})
  for lowest = 0, #candidates do
    best = improve_group(sweep, ticket, candidates[lowest], needed, best)
  end
  return best
end

-- Returns the tickets of a group, with `ticket` in front. Redis may have lost records: then there are fewer, and the
-- members of the others are removed from the index.
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
