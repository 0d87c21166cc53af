-- The operations of a matchmaker.
--
-- The scripts of a matchmaker have the same keys, and these arguments in front:
--   ARGV[1] rules: size, start, step, interval in ms and maximum of the window, separated by spaces
--       [2] a random text, which makes the ids of matches unique
--       [3] id of the node, 16 characters
--       [4] ms of the node's lease, [5] ms after which any node sends an unsent outcome, [6] ms after which an ended
--           ticket is deleted
-- Each replies {'rules', the stored rules} if its rules differ from them.

-- Adds a ticket, and matches it if there is a suitable group. A repeated call replies the state of the ticket.
--
-- KEYS[1] state [2] index [3] due [4] nodes: the matchmaker's
-- ARGV[1...6] those of every script of a matchmaker
--     [7] ticket [8] player [9] rating [10] properties
--     [11] ms until the timeout; 0: none
-- Reply: {state of the ticket, '' or its outcome, then each outcome to send}. {'conflict', ticket}: the player waits
--     with another ticket. {'used'}: the ticket's id was used for something else. {'rules', the stored rules}.
function entry.match_enqueue(keys, arguments)
  local state, node, lease = keys[1], arguments[3], tonumber(arguments[4])
  local id, player, properties = arguments[7], arguments[8], arguments[10]
  local rating, timeout = tonumber(arguments[9]), tonumber(arguments[11])
  local is_new = check_rules(state, arguments[1])
  local known = read_ticket(state, id)
  if known then
    if known.player ~= player or known.rating ~= rating or known.properties ~= properties then return {'used'} end
    if not known.outcome then return {known.state, ''} end
    local untold = redis.call('HGET', state, 'm:' .. string.match(known.outcome, '([^\n]*)\n'))
    return {known.state, known.outcome, untold or nil}
  end
  local other = redis.call('HGET', state, 'p:' .. player)
  if other then
    local waiting = read_ticket(state, other)
    if waiting and waiting.state == WAITING then return {'conflict', other} end
  end

  local matchmaker = Matchmaker.new({
    state = state, index = keys[2], due = keys[3], nodes = keys[4], node = node, seed = arguments[2],
    retell = tonumber(arguments[5]), forget = tonumber(arguments[6]), outcomes = {}, live = {[node] = true},
  })
  read_clock(matchmaker)
  local rules = read_rules(arguments[1])
  if is_new then begin_matchmaker(matchmaker, arguments[1]) end
  redis.call('ZADD', matchmaker.nodes, format_integer(matchmaker.now + lease), node)
  local stamp = take_stamp(matchmaker)
  local ticket = {
    id = id, player = player, rating = rating, properties = properties, level = 0, stamp = stamp,
    joined = matchmaker.now, timeout = timeout > 0 and matchmaker.now + timeout or 0,
  }
  local outcome = match_ticket(matchmaker, rules, ticket)
  if outcome then return {MATCHED, outcome, unpack(matchmaker.outcomes)} end
  ticket.owner = node
  store_ticket(matchmaker, rules, ticket)
  redis.call('ZADD', matchmaker.index, 0, 'o' .. node .. '\n' .. id)
  redis.call('HSET', state, 'p:' .. player, id)
  return {WAITING, '', unpack(matchmaker.outcomes)}
end

-- Ends up to `steps` tickets of one dead node. Returns the remaining steps.
local function lose_dead_node(matchmaker, steps)
  local dead = redis.call('ZRANGEBYSCORE', matchmaker.nodes, '-inf', format_integer(matchmaker.now), 'LIMIT', 0, 1)[1]
  if not dead then return steps end
  local prefix = 'o' .. dead .. '\n'
  local members = redis.call('ZRANGEBYLEX', matchmaker.index, '[' .. prefix, '(o' .. dead .. '\11', 'LIMIT', 0, steps)
  for _, member in ipairs(members) do
    lose_ticket(matchmaker, string.sub(member, #prefix + 1), member)
  end
  if #members < steps then redis.call('ZREM', matchmaker.nodes, dead) end
  return steps - #members
end

-- Widens the window of a waiting ticket, and searches again.
local function widen_window(matchmaker, rules, ticket)
  redis.call('ZREM', matchmaker.index, make_index_member(ticket))
  local level = math.floor((matchmaker.now - ticket.joined) / rules.interval)
  ticket.level = math.min(rules.last_level, math.max(ticket.level, level))
  -- The search must not find the ticket itself: it is not in the index.
  local outcome = match_ticket(matchmaker, rules, ticket)
  if not outcome then store_ticket(matchmaker, rules, ticket) end
end

-- Ends a ticket that has timed out or whose node is dead, or widens its window.
local function advance_ticket(matchmaker, rules, id, item)
  local ticket = read_ticket(matchmaker.state, id)
  -- An earlier step of this script may have ended it.
  if not ticket or ticket.state ~= WAITING then
    redis.call('ZREM', matchmaker.due, item)
    return
  end
  local lives = is_live(matchmaker, ticket.owner)
  local is_over = ticket.timeout > 0 and ticket.timeout <= matchmaker.now
  if not lives or is_over then
    end_tickets(matchmaker, {ticket}, lives and TIMED_OUT or LOST, 'end-' .. id)
  else
    widen_window(matchmaker, rules, ticket)
  end
end

-- Collects an outcome that no node has sent, or gives it up if the record of its first ticket was deleted. Returns the
-- number of outcomes that were given up.
local function collect_unsent(matchmaker, id, item)
  local outcome = redis.call('HGET', matchmaker.state, 'm:' .. id)
  local first = outcome and string.match(outcome, '[^\n]*\n[^\n]*\n([^\n]*)\n')
  if outcome and redis.call('HEXISTS', matchmaker.state, 't:' .. first) == 1 then
    redis.call('ZADD', matchmaker.due, format_integer(matchmaker.now + matchmaker.retell), item)
    matchmaker.outcomes[#matchmaker.outcomes + 1] = outcome
    return 0
  end
  local given_up = redis.call('HDEL', matchmaker.state, 'm:' .. id)
  redis.call('ZREM', matchmaker.due, item)
  return given_up
end

-- Renews the lease of the node, which keeps its tickets, and does what is due: widens windows and searches again, ends
-- tickets that have timed out or whose node is dead, and collects outcomes that no node has sent.
--
-- KEYS[1] state [2] index [3] due [4] nodes: the matchmaker's
-- ARGV[1...6] those of every script of a matchmaker
--     [7] the maximum number of steps
-- Reply: {ms until the next step, or -1; 1 if there is more to do now; number of outcomes that were given up; then each
--     outcome to send}. {'rules', the stored rules}.
function entry.match_tick(keys, arguments)
  local state, due, node = keys[1], keys[3], arguments[3]
  check_rules(state, arguments[1])
  local rules = read_rules(arguments[1])
  local matchmaker = Matchmaker.new({
    state = state, index = keys[2], due = due, nodes = keys[4], node = node, seed = arguments[2],
    retell = tonumber(arguments[5]), forget = tonumber(arguments[6]), outcomes = {}, live = {[node] = true},
  })
  read_clock(matchmaker)
  local now = matchmaker.now
  redis.call('ZADD', matchmaker.nodes, format_integer(now + tonumber(arguments[4])), node)
  local steps = lose_dead_node(matchmaker, tonumber(arguments[7]))

  local items, given_up = {}, 0
  if steps > 0 then items = redis.call('ZRANGEBYSCORE', due, '-inf', format_integer(now), 'LIMIT', 0, steps) end
  for _, item in ipairs(items) do
    local kind, id = string.sub(item, 1, 1), string.sub(item, 2)
    if kind == 't' then
      advance_ticket(matchmaker, rules, id, item)
    elseif kind == 'm' then
      local count = collect_unsent(matchmaker, id, item)
      given_up = given_up + count
    else
      redis.call('HDEL', state, 't:' .. id)
      redis.call('ZREM', due, item)
    end
  end
  local first = redis.call('ZRANGEBYSCORE', due, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local wait = first[2] and math.max(0, tonumber(first[2]) - now) or -1
  local has_more = (steps <= 0 or #items >= steps) and 1 or 0
  return {format_integer(wait), has_more, given_up, unpack(matchmaker.outcomes)}
end

-- Cancels a ticket if it waits, or replies its state.
--
-- KEYS[1] state [2] index [3] due [4] nodes: the matchmaker's
-- ARGV[1...6] those of every script of a matchmaker
--     [7] ticket
--     [8] 1 to cancel it
-- Reply: {state of the ticket, '' or its outcome, properties}. {'none'}: there is no such ticket. {'rules', the stored
--     rules}.
-- Bounded: one ticket.
function entry.match_end(keys, arguments)
  local state, id = keys[1], arguments[7]
  check_rules(state, arguments[1])
  local ticket = read_ticket(state, id)
  if not ticket then return {'none'} end
  if ticket.state == WAITING and arguments[8] == '1' then
    local matchmaker =
      Matchmaker.new({state = state, index = keys[2], due = keys[3], forget = tonumber(arguments[6])})
    read_clock(matchmaker)
    local outcome = end_tickets(matchmaker, {ticket}, CANCELLED, 'end-' .. id)
    return {CANCELLED, outcome, ticket.properties}
  end
  return {ticket.state, ticket.outcome or '', ticket.properties}
end

-- Records that an outcome has been sent to its players.
--
-- KEYS[1] state [2] index [3] due [4] nodes: the matchmaker's
-- ARGV[1...6] those of every script of a matchmaker
--     [7] id of the outcome
-- Reply: 1 if it was not recorded before, else 0. {'rules', the stored rules}.
function entry.match_told(keys, arguments)
  local state, id = keys[1], arguments[7]
  check_rules(state, arguments[1])
  redis.call('ZREM', keys[3], 'm' .. id)
  return redis.call('HDEL', state, 'm:' .. id)
end

-- Counts the waiting tickets and the nodes of a matchmaker. Changes nothing.
--
-- KEYS[1] state [2] index [3] due [4] nodes: the matchmaker's
-- ARGV[1...6] those of every script of a matchmaker
-- Reply: {number of waiting tickets, number of nodes with a lease}. {'rules', the stored rules}.
function entry.match_inspect(keys, arguments)
  check_rules(keys[1], arguments[1])
  local now = read_milliseconds()
  return {
    redis.call('ZLEXCOUNT', keys[2], '[o', '(p'),
    redis.call('ZCOUNT', keys[4], '(' .. format_integer(now), '+inf'),
  }
end

-- Finds out what tickets are. Changes nothing.
--
-- KEYS[1] state [2] index [3] due [4] nodes: the matchmaker's
-- ARGV[1...6] those of every script of a matchmaker
--     [7...262] tickets
-- Reply: for each ticket, 0 if there is no record of it, 1 if it waits, 2 if it has ended. {'rules', the stored rules}.
-- Bounded: the number of tickets.
function entry.match_known(keys, arguments)
  check_rules(keys[1], arguments[1])
  local found = {}
  for number = 7, #arguments do
    local ticket = read_ticket(keys[1], arguments[number])
    found[number - 6] = not ticket and 0 or ticket.state == WAITING and 1 or 2
  end
  return found
end

-- Restores an outcome that a failover may have lost: ends those of its tickets that wait or have no record. If one of
-- them has another outcome, nothing is changed.
--
-- KEYS[1] state [2] index [3] due [4] nodes: the matchmaker's
-- ARGV[1...6] those of every script of a matchmaker
--     [7] id of the outcome [8] its reason [9] the properties of its tickets
--     then for each ticket: id, player, rating
-- Reply: {1 if anything was missing, else 0}. {'other', ticket}: a ticket has another outcome. {'rules', the stored
--     rules}.
-- Bounded: the tickets of one match.
function entry.match_restore(keys, arguments)
  local state, id, reason = keys[1], arguments[7], arguments[8]
  local is_new = check_rules(state, arguments[1])
  local matchmaker = Matchmaker.new({
    state = state, index = keys[2], due = keys[3], retell = tonumber(arguments[5]), forget = tonumber(arguments[6]),
    outcomes = {},
  })
  read_clock(matchmaker)
  local tickets, is_missing = {}, false
  for at = 10, #arguments, 3 do
    local ticket = read_ticket(state, arguments[at])
    if ticket and ticket.outcome and string.match(ticket.outcome, '[^\n]*\n[^\n]*') ~= id .. '\n' .. reason then
      return {'other', ticket.id}
    end
    if not ticket or not ticket.outcome then is_missing = true end
    tickets[#tickets + 1] = ticket or {
      id = arguments[at], player = arguments[at + 1], rating = tonumber(arguments[at + 2]), properties = arguments[9],
    }
  end
  if not is_missing then return {0} end
  if is_new then begin_matchmaker(matchmaker, arguments[1]) end
  end_tickets(matchmaker, tickets, reason, id)
  return {1}
end
