-- The tickets of a matchmaker: the keys, how tickets are stored, and how they end. A ticket waits until it is matched
-- or cancelled, times out, or its node dies. Then its outcome is stored until a node has sent it to the players.

-- The keys of a matchmaker, in the order of KEYS:
--   state  hash        rules: size and window rule, as in ARGV; stamp: the last stamp
--                      t:TICKET   the ticket's record (read_ticket)
--                      p:PLAYER   the player's waiting ticket
--                      m:OUTCOME  the text of an outcome that has not been sent yet (end_tickets)
--   index  sorted set, all scores 0: of each waiting ticket
--                      q PROPERTIES \n LEVEL RATING STAMP OWNER TICKET, and o OWNER \n TICKET
--   due    sorted set  by ms since 1970: t TICKET the next widening or the timeout, m OUTCOME when any node sends it,
--                      f TICKET when the record is deleted
--   nodes  sorted set  node ids by ms since 1970 when their leases end
-- Index and due have a member MATCH_GUARD that stays.

-- A ticket is a table, because a match is a list of them:
--   id, player, properties   texts
--   rating                   a whole number
--   state                    WAITING, MATCHED, CANCELLED, TIMED_OUT or LOST
--   owner                    of a waiting ticket: the node that keeps it, 16 characters
--   level                    of a waiting ticket: the number of times that its window has widened
--   stamp                    of a waiting ticket: 14 hexadecimal digits, which grow from ticket to ticket
--   joined, timeout          of a waiting ticket: ms since 1970; no timeout is 0
--   outcome                  of an ended ticket: the text of its outcome
-- Its record has a line for each of: state, player, properties, rating, and then for a waiting ticket: owner, level,
-- stamp, joined, timeout; for an ended ticket: the outcome. An outcome has a line for each of: id, reason, and then
-- ticket, player and rating of each ticket that it ends.

-- The matchmaker that a script works on: its keys, its settings and the time.
local Matchmaker = record {
  also = {
    'state', 'index', 'due', 'nodes',  -- the keys
    'node',          -- that runs the script, 16 characters
    'seed',          -- a random text, which makes the ids of matches unique
    'retell',        -- ms after which any node sends an unsent outcome
    'forget',        -- ms after which an ended ticket is deleted
    'now',           -- ms since 1970
    'microseconds',  -- since 1970
    'outcomes',      -- list of the outcomes to send
    'live',          -- whether each node that was looked up is alive, by its id
  },
}

-- The size of a match, and how windows widen.
local Rules = record {
  also = {
    'size',        -- of a match
    'start',       -- width of a new window: the distance to the ratings that are within it
    'step',        -- by which it widens
    'interval',    -- ms between two widenings
    'widest',      -- the maximum width
    'last_level',  -- the number of widenings until a window is the widest
  },
}

-- States of a ticket; the later ones are also the reasons of outcomes.
local WAITING, MATCHED, CANCELLED, TIMED_OUT, LOST = 'waiting', 'matched', 'cancelled', 'timedOut', 'lost'
-- In the index, LEVEL has 2 hexadecimal digits, RATING 12, STAMP 14 and OWNER 16 characters. A rating is stored with
-- this number added, so that it is positive.
local RATING_OFFSET = 4398046511104
-- A member that stays in index and due: an empty key would disappear, and could not be used again in the same script
-- while its slot is being moved.
local MATCH_GUARD = 'a'

-- Refuses rules that differ from those of the matchmaker. Returns whether it has none yet.
local function check_rules(state, rules)
  local stored = redis.call('HGET', state, 'rules')
  if stored and stored ~= rules then refuse({'rules', stored}) end
  return not stored
end

-- Reads rules: size, start, step, interval and maximum, separated by spaces.
local function read_rules(text)
  local size, start, step, interval, widest = string.match(text, '(%d+) (%d+) (%d+) (%d+) (%d+)')
  local rules = Rules.new({
    size = tonumber(size), start = tonumber(start), step = tonumber(step), interval = tonumber(interval),
    widest = tonumber(widest),
  })
  rules.last_level = rules.step > 0 and math.ceil((rules.widest - rules.start) / rules.step) or 0
  return rules
end

-- Reads the time, in ms and in microseconds.
local function read_clock(matchmaker)
  local time = redis.call('TIME')
  matchmaker.now = math.floor(time[1] * 1000 + time[2] / 1000)
  matchmaker.microseconds = time[1] * 1000000 + time[2]
end

-- Returns a text that grows with each call, even when the clock steps back: 14 hexadecimal digits.
local function take_stamp(matchmaker)
  local last = tonumber(redis.call('HGET', matchmaker.state, 'stamp') or 0)
  local stamp = math.max(matchmaker.microseconds, last + 1)
  redis.call('HSET', matchmaker.state, 'stamp', format_integer(stamp))
  return string.format('%014x', stamp)
end

-- Returns a ticket, or nil if there is no record of it.
local function read_ticket(state, id)
  local stored = redis.call('HGET', state, 't:' .. id)
  if not stored then return nil end
  local lines = {}
  for line in string.gmatch(stored, '([^\n]*)\n') do lines[#lines + 1] = line end
  local ticket = {id = id, state = lines[1], player = lines[2], properties = lines[3], rating = tonumber(lines[4])}
  if ticket.state == WAITING then
    ticket.owner, ticket.level, ticket.stamp = lines[5], tonumber(lines[6]), lines[7]
    ticket.joined, ticket.timeout = tonumber(lines[8]), tonumber(lines[9])
  else
    ticket.outcome = table.concat(lines, '\n', 5) .. '\n'
  end
  return ticket
end

-- Returns the member of the index by which a waiting ticket is found for a match.
local function make_index_member(ticket)
  return 'q' .. ticket.properties .. '\n' .. string.format('%02x%012x', ticket.level, ticket.rating + RATING_OFFSET)
    .. ticket.stamp .. ticket.owner .. ticket.id
end

-- Returns the time of a waiting ticket's next widening or of its timeout; nil if there is none.
local function find_next_time(rules, ticket)
  local at = ticket.level < rules.last_level and ticket.joined + (ticket.level + 1) * rules.interval or nil
  if ticket.timeout > 0 then at = math.min(at or ticket.timeout, ticket.timeout) end
  return at
end

-- Stores a waiting ticket.
local function store_ticket(matchmaker, rules, ticket)
  redis.call('HSET', matchmaker.state, 't:' .. ticket.id,
    WAITING .. '\n' .. ticket.player .. '\n' .. ticket.properties .. '\n' .. format_integer(ticket.rating) .. '\n'
      .. ticket.owner .. '\n' .. ticket.level .. '\n' .. ticket.stamp .. '\n' .. format_integer(ticket.joined) .. '\n'
      .. format_integer(ticket.timeout) .. '\n')
  redis.call('ZADD', matchmaker.index, 0, make_index_member(ticket))
  local at = find_next_time(rules, ticket)
  if at then
    redis.call('ZADD', matchmaker.due, format_integer(at), 't' .. ticket.id)
  else
    redis.call('ZREM', matchmaker.due, 't' .. ticket.id)
  end
end

-- Removes a waiting ticket from the index and from due, and its player's reference to it.
local function remove_from_queue(matchmaker, ticket)
  redis.call('ZREM', matchmaker.index, make_index_member(ticket), 'o' .. ticket.owner .. '\n' .. ticket.id)
  redis.call('ZREM', matchmaker.due, 't' .. ticket.id)
  redis.call('HDEL', matchmaker.state, 'p:' .. ticket.player)
end

-- Ends tickets, and stores their outcome until it is sent, unless they were cancelled. `id` is that of the outcome. A
-- ticket without an owner has not been stored yet. Returns the outcome.
local function end_tickets(matchmaker, tickets, reason, id)
  local lines = {id, reason}
  for _, ticket in ipairs(tickets) do
    lines[#lines + 1] = ticket.id
    lines[#lines + 1] = ticket.player
    lines[#lines + 1] = format_integer(ticket.rating)
  end
  local outcome = table.concat(lines, '\n') .. '\n'
  for _, ticket in ipairs(tickets) do
    if ticket.owner then remove_from_queue(matchmaker, ticket) end
    redis.call('HSET', matchmaker.state, 't:' .. ticket.id,
      reason .. '\n' .. ticket.player .. '\n' .. ticket.properties .. '\n' .. format_integer(ticket.rating) .. '\n'
        .. outcome)
    redis.call('ZADD', matchmaker.due, format_integer(matchmaker.now + matchmaker.forget), 'f' .. ticket.id)
  end
  if reason ~= CANCELLED then
    redis.call('HSET', matchmaker.state, 'm:' .. id, outcome)
    redis.call('ZADD', matchmaker.due, format_integer(matchmaker.now + matchmaker.retell), 'm' .. id)
    matchmaker.outcomes[#matchmaker.outcomes + 1] = outcome
  end
  return outcome
end

-- Begins the keys of a matchmaker.
local function begin_matchmaker(matchmaker, rules)
  redis.call('HSET', matchmaker.state, 'rules', rules)
  redis.call('ZADD', matchmaker.index, 0, MATCH_GUARD)
  redis.call('ZADD', matchmaker.due, '+inf', MATCH_GUARD)
end

-- Ends the ticket of a dead node. If it has no record, or does not wait, removes its member of the index.
local function lose_ticket(matchmaker, id, member)
  local ticket = read_ticket(matchmaker.state, id)
  if ticket and ticket.owner then
    end_tickets(matchmaker, {ticket}, LOST, 'end-' .. id)
  else
    redis.call('ZREM', matchmaker.index, member)
  end
end

-- Returns whether a node has a lease. Each node is looked up once in a script.
local function is_live(matchmaker, node)
  local live = matchmaker.live
  if live[node] == nil then
    live[node] = tonumber(redis.call('ZSCORE', matchmaker.nodes, node) or 0) > matchmaker.now
  end
  return live[node]
end
