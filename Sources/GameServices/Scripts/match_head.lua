-- The beginning of every script of a matchmaker: the layout of its data, and the search for a match.
--
-- KEYS[1] state  hash    rules: size and window rule, as in ARGV; stamp: the last stamp
--                        t:TICKET  the ticket's RECORD; p:PLAYER  the player's waiting ticket
--                        m:OUTCOME the text of an outcome that has not been sent yet
--     [2] index  sorted set, all scores 0: of each waiting ticket
--                        'q' PROPERTIES '\n' LEVEL RATING STAMP OWNER TICKET, and 'o' OWNER '\n' TICKET
--     [3] due    sorted set by ms since 1970: 't' TICKET the next widening or the timeout, 'm' OUTCOME when any node
--                        tells it, 'f' TICKET when the record is forgotten
--     [4] nodes  sorted set of node ids by ms since 1970 when their lease ends
--     Index and due have a member GUARD that stays: an empty key would disappear, and could not be used again in the
--     same script while its slot is being moved. Nodes has the id of the node that runs the script.
-- ARGV[1] rules: size, start, step, interval in ms and maximum of the window
--     [2] a random text, which makes the ids of matches unique
--     [3] id of the node, 16 characters
--     [4] ms: the node's lease, [5] until another node tells an outcome, [6] until an ended ticket is forgotten
--
-- A RECORD has a line for each of: state, player, properties, rating, and then for a waiting ticket: owner, level,
-- stamp, joined (ms since 1970), timeout (ms since 1970; 0: none); for an ended ticket: the outcome.
-- Every script replies {'rules', the stored rules} when its own are others.
-- An outcome has a line for each of: id, reason, and then ticket, player and rating of everyone that it concerns.
local call, format, sub, find = redis.call, string.format, string.sub, string.find
local min, max, floor = math.min, math.max, math.floor
local WAITING, MATCHED, CANCELLED, TIMED_OUT, LOST = 'waiting', 'matched', 'cancelled', 'timedOut', 'lost'
-- LEVEL has 2 hexadecimal digits, RATING 12, STAMP 14. A rating is stored with this number added, so that it is
-- positive.
local RATING_OFFSET = 4398046511104
local OWNER_SIZE = 16
local GUARD = 'a'
local LEVEL_AT, RATING_AT, STAMP_AT, OWNER_AT, TICKET_AT = 1, 3, 15, 29, 45

local state, index, due, nodes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local rules, seed, node = ARGV[1], ARGV[2], ARGV[3]
local lease, retell, forget = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local stored_rules = call('HGET', state, 'rules')
if stored_rules and stored_rules ~= rules then return {'rules', stored_rules} end
local size, start, step, interval, widest = string.match(rules, '(%d+) (%d+) (%d+) (%d+) (%d+)')
size, start, step, interval, widest =
  tonumber(size), tonumber(start), tonumber(step), tonumber(interval), tonumber(widest)
local last_level = step > 0 and math.ceil((widest - start) / step) or 0
local time = call('TIME')
local now = floor(time[1] * 1000 + time[2] / 1000)
-- The outcomes to tell, as the reply.
local outcomes = {}

local function integer(number) return format('%.0f', number) end

local function width_of(level) return min(widest, start + level * step) end

local function lines_of(text)
  local lines = {}
  for line in string.gmatch(text, '([^\n]*)\n') do lines[#lines + 1] = line end
  return lines
end

local function text_of(...) return table.concat({...}, '\n') .. '\n' end

-- A number that grows with each call, even when the clock steps back.
local function next_stamp()
  local stamp = max(time[1] * 1000000 + time[2], tonumber(call('HGET', state, 'stamp') or 0) + 1)
  call('HSET', state, 'stamp', integer(stamp))
  return format('%014x', stamp)
end

-- Returns a ticket, or nil.
local function read(ticket)
  local record = call('HGET', state, 't:' .. ticket)
  if not record then return nil end
  local lines = lines_of(record)
  local found = {id = ticket, state = lines[1], player = lines[2], properties = lines[3], rating = tonumber(lines[4])}
  if found.state == WAITING then
    found.owner, found.level, found.stamp = lines[5], tonumber(lines[6]), lines[7]
    found.joined, found.timeout = tonumber(lines[8]), tonumber(lines[9])
  else
    found.outcome = text_of(unpack(lines, 5))
  end
  return found
end

local function member_of(ticket)
  return 'q' .. ticket.properties .. '\n' .. format('%02x%012x', ticket.level, ticket.rating + RATING_OFFSET)
    .. ticket.stamp .. ticket.owner .. ticket.id
end

-- The time of the next widening or of the timeout; nil if there is none.
local function next_time(ticket)
  local at = ticket.level < last_level and ticket.joined + (ticket.level + 1) * interval or nil
  if ticket.timeout > 0 then at = min(at or ticket.timeout, ticket.timeout) end
  return at
end

local function store(ticket)
  call('HSET', state, 't:' .. ticket.id, text_of(WAITING, ticket.player, ticket.properties, integer(ticket.rating),
    ticket.owner, ticket.level, ticket.stamp, integer(ticket.joined), integer(ticket.timeout)))
  call('ZADD', index, 0, member_of(ticket))
  local at = next_time(ticket)
  if at then call('ZADD', due, integer(at), 't' .. ticket.id) else call('ZREM', due, 't' .. ticket.id) end
end

-- Ends tickets, which are in the state, and stores their outcome until it is sent.
local function finish(tickets, reason, id)
  local lines = {id, reason}
  for _, ticket in ipairs(tickets) do
    lines[#lines + 1] = ticket.id
    lines[#lines + 1] = ticket.player
    lines[#lines + 1] = integer(ticket.rating)
  end
  local outcome = text_of(unpack(lines))
  for _, ticket in ipairs(tickets) do
    if ticket.owner then
      call('ZREM', index, member_of(ticket), 'o' .. ticket.owner .. '\n' .. ticket.id)
      call('ZREM', due, 't' .. ticket.id)
      call('HDEL', state, 'p:' .. ticket.player)
    end
    call('HSET', state, 't:' .. ticket.id,
      text_of(reason, ticket.player, ticket.properties, integer(ticket.rating)) .. outcome)
    call('ZADD', due, integer(now + forget), 'f' .. ticket.id)
  end
  if reason ~= CANCELLED then
    call('HSET', state, 'm:' .. id, outcome)
    call('ZADD', due, integer(now + retell), 'm' .. id)
    outcomes[#outcomes + 1] = outcome
  end
  return outcome
end

-- Ends the ticket of a dead node. Without its record, only the member of the index is removed.
local function lose(id, member)
  local ticket = read(id)
  if ticket and ticket.owner then finish({ticket}, LOST, 'end-' .. id) else call('ZREM', index, member) end
end

local live = {[node] = true}
local function is_live(owner)
  if live[owner] == nil then live[owner] = tonumber(call('ZSCORE', nodes, owner) or 0) > now end
  return live[owner]
end
