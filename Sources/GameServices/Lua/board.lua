-- Leaderboards. A board has windows of time, such as the current week, and each window has two keys:
--   ranks   sorted set  The members are a stamp of 14 hexadecimal digits and the name. The score of a member is that of
--                       the entry times the direction, so that lower is better, and equal scores are in the order of
--                       their stamps.
--   stamps  hash        from name to stamp
-- The board itself has a key:
--   meta    hash        rules: mode and direction; stamp: the last stamp

-- The largest absolute value of a score or sum, 2^53: greater numbers are rounded.
local MAX_SCORE = 9007199254740992
-- Modes: the better score remains, or scores are added. In any other mode, latest, the new score replaces the old one.
local BEST, SUM = 'best', 'sum'
-- Kinds of reads.
local AROUND, OF = 'around', 'of'
-- The keys and arguments of a submit that come before those of its windows, and the arguments of each window.
local FIXED_KEYS, FIXED_ARGUMENTS, WINDOW_ARGUMENTS = 2, 5, 4

-- The score that a submit adds.
local Submit = record {
  also = {
    'name',
    'value',      -- score times direction
    'mode',       -- best, latest or sum
    'direction',  -- -1 if a higher score is better, 1 if a lower one is
  },
}

-- Refuses a window that does not contain the time now. All times are in microseconds since 1970; `last` is 0 for a
-- window that need not be the current one.
local function check_window(first, last, now)
  if last > 0 and (now < first or now >= last) then refuse({'window', format_integer(now)}) end
end

-- The changes that a submit makes, as lists with an element for each window.
local Plan = record {
  also = {
    'values',   -- the new values
    'olds',     -- the present values; nil without an entry
    'members',  -- the present members of `ranks`; nil without an entry
  },
}

-- Replies with the answer that an earlier attempt of the same submit has stored, if there is one. The first line of the
-- stored text is `request`, and the rest is the answer.
local function repeat_answer(answer_key, request)
  local earlier = redis.call('GET', answer_key)
  if earlier then
    local line_end = string.find(earlier, '\n', 1, true) or 0
    if string.sub(earlier, 1, line_end - 1) ~= request then refuse({'conflict'}) end
    -- A user that may not run PTTL can submit nevertheless.
    local ttl = redis.pcall('PTTL', answer_key)
    refuse({'again', string.sub(earlier, line_end + 1), type(ttl) == 'number' and ttl or -1})
  end
end

-- Plans what a submit will write in a window. `id` is the window's, for the refusal of a sum that exceeds the limit.
local function plan_window(submit, plan, window, ranks, stamps, id)
  local value = submit.value
  local stamp = redis.call('HGET', stamps, submit.name)
  local member = stamp and stamp .. submit.name
  local old = tonumber(member and redis.call('ZSCORE', ranks, member) or nil)
  if old then
    if submit.mode == BEST then
      if old < value then value = old end
    elseif submit.mode == SUM then
      -- Differences, because a sum beyond the limit is rounded.
      if old > 0 and value > MAX_SCORE - old or old < 0 and value < -MAX_SCORE - old then refuse({'range', id}) end
      value = old + value
    end
    plan.olds[window], plan.members[window] = old, member
  end
  plan.values[window] = value
end

-- Stores the value of a window under a new stamp. `old_member` is nil for a new entry; then the keys expire at
-- `expires`, in ms since 1970, or '0'. Returns the new member.
local function store_value(submit, ranks, stamps, value, stamp, old_member, expires)
  local member = stamp .. submit.name
  -- The new member first: an empty key would disappear, and could not be used again while its slot is being moved.
  redis.call('ZADD', ranks, format_integer(value), member)
  if old_member then redis.call('ZREM', ranks, old_member) end
  redis.call('HSET', stamps, submit.name, stamp)
  if not old_member and expires ~= '0' then
    redis.call('PEXPIREAT', ranks, expires)
    redis.call('PEXPIREAT', stamps, expires)
  end
  return member
end

-- Writes what was planned, under a stamp. Returns the answer to the submit.
local function write_plan(submit, plan, stamp, keys, arguments)
  local lines = {}
  for window = 1, #plan.values do
    local ranks, stamps = keys[2 * window + 1], keys[2 * window + 2]
    local at = FIXED_ARGUMENTS + WINDOW_ARGUMENTS * (window - 1)
    local value, member, changed = plan.values[window], plan.members[window], 0
    if value ~= plan.olds[window] then
      member = store_value(submit, ranks, stamps, value, stamp, member, arguments[at + 4])
      changed = 1
    end
    lines[window] = string.format('%.0f %.0f %.0f %d %s', redis.call('ZRANK', ranks, member) + 1,
      submit.direction * value, redis.call('ZCARD', ranks), changed, arguments[at + 1])
  end
  return table.concat(lines, '\n')
end

-- Submits a score to all windows of a leaderboard, and returns the ranks. Everything is read and checked before
-- anything is written, because Redis does not roll back.
--
-- KEYS[1] meta
--     [2] answer, string: to this submit. It expires.
--     then for each window: ranks, stamps
-- ARGV[1] name
--     [2] score
--     [3] mode: best, latest or sum
--     [4] direction: -1 if a higher score is better, 1 if a lower one is
--     [5] ms that the answer is kept
--     then for each window: id, start and end in microseconds since 1970 (end 0: none), ms since 1970 when it expires
-- Reply: {'ok', ANSWER}. ANSWER has a line for each window: rank, score, number of entries, 1 if the entry has
--     changed, id. {'again', ANSWER, ms until it expires, or -1}: the answer to an earlier submit with the same id.
--     {'window', microseconds since 1970}: a window is not the current one. {'range', id of the window}: the sum
--     exceeds the limit. {'conflict'}: the answer is that to another submit. {'rules', the stored rules}.
function entry.board_submit(keys, arguments)
  local meta, answer_key = keys[1], keys[2]
  local score, answer_ttl = arguments[2], arguments[5]
  local submit = Submit.new({name = arguments[1], mode = arguments[3], direction = tonumber(arguments[4])})
  submit.value = submit.direction * tonumber(score)
  local request = score .. ' ' .. submit.name
  repeat_answer(answer_key, request)

  local now = read_microseconds()
  local windows = (#keys - FIXED_KEYS) / 2
  for window = 1, windows do
    local at = FIXED_ARGUMENTS + WINDOW_ARGUMENTS * (window - 1)
    check_window(tonumber(arguments[at + 2]), tonumber(arguments[at + 3]), now)
  end
  local rules = submit.mode .. ' ' .. arguments[4]
  local stored = redis.call('HMGET', meta, 'rules', 'stamp')
  if stored[1] and stored[1] ~= rules then return {'rules', stored[1]} end
  local plan = Plan.new({values = {}, olds = {}, members = {}})
  for window = 1, windows do
    local id = arguments[FIXED_ARGUMENTS + WINDOW_ARGUMENTS * (window - 1) + 1]
    plan_window(submit, plan, window, keys[2 * window + 1], keys[2 * window + 2], id)
  end

  -- Stamps grow even when the clock steps back.
  local number = math.max(now, tonumber(stored[2] or 0) + 1)
  if not stored[1] then redis.call('HSET', meta, 'rules', rules) end
  redis.call('HSET', meta, 'stamp', format_integer(number))
  local answer = write_plan(submit, plan, string.format('%014x', number), keys, arguments)
  redis.call('SET', answer_key, request .. '\n' .. answer, 'PX', answer_ttl)
  return {'ok', answer}
end

-- Adds entries of names to a reply.
local function add_entries_of(reply, ranks, stamps, names)
  local found = #names > 0 and redis.call('HMGET', stamps, unpack(names))
  for number = 1, #names do
    local member = found[number] and found[number] .. names[number]
    local rank = member and redis.call('ZRANK', ranks, member)
    if rank then
      reply[#reply + 1] = rank + 1
      reply[#reply + 1] = member
      reply[#reply + 1] = redis.call('ZSCORE', ranks, member)
    end
  end
end

-- Adds `limit` entries to a reply, after `skipped` others.
local function add_entries(reply, ranks, skipped, limit)
  local found = redis.call('ZRANGE', ranks, format_integer(skipped), format_integer(skipped + limit - 1), 'WITHSCORES')
  for number = 1, #found, 2 do
    reply[#reply + 1] = skipped + (number + 1) / 2
    reply[#reply + 1] = found[number]
    reply[#reply + 1] = found[number + 1]
  end
end

-- Reads entries of one window of a leaderboard. Changes nothing.
--
-- KEYS[1] ranks [2] stamps: the window's
-- ARGV[1] start and [2] end of the window in microseconds since 1970. End 0: the window need not be the current one.
--     [3] top: then the number of entries to skip, and the maximum number of entries
--         around: then a name, and the maximum number of entries, with those on both sides of the name
--         of: then up to 200 names
-- Reply: {'ok', number of entries of the window, then for each entry: rank, member, score times the direction}.
--     {'window', microseconds since 1970}: the window is not the current one.
function entry.board_read(keys, arguments)
  local ranks, stamps, kind = keys[1], keys[2], arguments[3]
  local now = read_microseconds()
  check_window(tonumber(arguments[1]), tonumber(arguments[2]), now)
  local count = redis.call('ZCARD', ranks)
  local reply = {'ok', count}
  if kind == OF then
    add_entries_of(reply, ranks, stamps, {unpack(arguments, 4)})
    return reply
  end
  local skipped, limit = tonumber(arguments[4]), tonumber(arguments[5])
  if kind == AROUND then
    local name = arguments[4]
    local stamp = redis.call('HGET', stamps, name)
    local rank = stamp and redis.call('ZRANK', ranks, stamp .. name)
    if not rank then return reply end
    -- At either end, the entries that are missing on one side are taken from the other.
    skipped = math.max(0, math.min(rank - math.floor((limit - 1) / 2), count - limit))
  end
  add_entries(reply, ranks, skipped, limit)
  return reply
end

-- Finds out which answers to submits are missing. Changes nothing.
--
-- KEYS[1...256] answers
-- Reply: the positions of the keys that do not exist.
-- Bounded: the number of keys.
function entry.board_answers(keys, arguments)
  local missing = {}
  for position = 1, #keys do
    local answer = redis.call('GET', keys[position])
    if not answer then missing[#missing + 1] = position end
  end
  return missing
end

-- Removes an entry of a window, which has this stamp.
local function remove_entry(ranks, stamps, name, stamp)
  redis.call('ZREM', ranks, stamp .. name)
  redis.call('HDEL', stamps, name)
end

-- Removes an entry from windows of a leaderboard.
--
-- KEYS for each window: ranks, stamps
-- ARGV[1] name
-- Reply: for each window, the stamp of the entry, or '' where there was none.
function entry.board_remove(keys, arguments)
  local name, removed = arguments[1], {}
  for window = 1, #keys / 2 do
    local ranks, stamps = keys[2 * window - 1], keys[2 * window]
    local stamp = redis.call('HGET', stamps, name)
    if stamp then remove_entry(ranks, stamps, name, stamp) end
    removed[window] = stamp or ''
  end
  return removed
end

-- Repeats a removal that a failover may have lost: removes the entry that was removed, or an earlier state of it, which
-- is there if a later submit is lost too. Stamps grow, so an entry with a later stamp came after the removal.
--
-- KEYS for each window: ranks, stamps
-- ARGV[1] name
--     then for each window: the stamp of the entry that was removed
-- Reply: the number of windows that had the entry.
-- Bounded: as board_remove.
function entry.board_remove_again(keys, arguments)
  local name, removed = arguments[1], 0
  for window = 1, #keys / 2 do
    local ranks, stamps = keys[2 * window - 1], keys[2 * window]
    local stamp = redis.call('HGET', stamps, name)
    if stamp and tonumber(stamp, 16) <= tonumber(arguments[window + 1], 16) then
      remove_entry(ranks, stamps, name, stamp)
      removed = removed + 1
    end
  end
  return removed
end
