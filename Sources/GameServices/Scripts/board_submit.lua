-- Submits a score to all windows of a leaderboard, and returns the ranks.
--
-- Everything is read and checked before anything is written, because Redis does not roll back.
--
-- KEYS[1] meta   hash  rules: mode and direction; stamp: the last stamp
--     [2] answer string: to this submit. It expires.
--     then for each window: ranks (sorted set), stamps (hash from name to stamp)
-- A member of `ranks` is a stamp of 14 hexadecimal digits and the name. Its score is the entry's score times the
-- direction, so that lower is better, and equal scores are in the order of their stamps.
-- ARGV[1] name
--     [2] score
--     [3] mode: best, latest or sum
--     [4] direction: -1 if a higher score is better, 1 if a lower one is
--     [5] ms that the answer is kept
--     then for each window: id, start and end in microseconds since 1970 (end 0: none), ms since 1970 when it expires
-- Reply: {'ok', ANSWER}. ANSWER has a line for each window: rank, score, number of entries, 1 if the entry has
--     changed, id. {'window', microseconds since 1970}: a window is not the current one. {'range', id of the window}:
--     the sum exceeds the limit. {'conflict'}: the answer is that to another submit. {'rules', the stored rules}.
local call, format, find, sub = redis.call, string.format, string.find, string.sub
local MAX_SCORE = 9007199254740992
local FIXED_ARGUMENTS, WINDOW_ARGUMENTS = 5, 4

local meta, answer_key = KEYS[1], KEYS[2]
local name, score, mode, direction, answer_ttl = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV[5]
local windows = (#KEYS - 2) / 2

-- The first line of what is stored says what was submitted.
local submit = ARGV[2] .. ' ' .. name
local earlier = call('GET', answer_key)
if earlier then
  local line_end = find(earlier, '\n', 1, true) or 0
  if sub(earlier, 1, line_end - 1) ~= submit then return {'conflict'} end
  return {'ok', sub(earlier, line_end + 1)}
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
for window = 1, windows do
  local at = FIXED_ARGUMENTS + WINDOW_ARGUMENTS * (window - 1)
  local first, last = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  if last > 0 and (now < first or now >= last) then return {'window', format('%.0f', now)} end
end
local rules = mode .. ' ' .. ARGV[4]
local stored = call('HMGET', meta, 'rules', 'stamp')
if stored[1] and stored[1] ~= rules then return {'rules', stored[1]} end

local values, olds, old_members = {}, {}, {}
for window = 1, windows do
  local ranks, stamps = KEYS[2 * window + 1], KEYS[2 * window + 2]
  local value = direction * score
  local stamp = call('HGET', stamps, name)
  local member = stamp and stamp .. name
  local old = tonumber(member and call('ZSCORE', ranks, member) or nil)
  if old then
    if mode == 'best' then
      if old < value then value = old end
    elseif mode == 'sum' then
      -- Differences, because a sum beyond the limit is rounded.
      if old > 0 and value > MAX_SCORE - old or old < 0 and value < -MAX_SCORE - old then
        return {'range', ARGV[FIXED_ARGUMENTS + WINDOW_ARGUMENTS * (window - 1) + 1]}
      end
      value = old + value
    end
    olds[window], old_members[window] = old, member
  end
  values[window] = value
end

-- Stamps grow even when the clock steps back.
local number = math.max(now, tonumber(stored[2] or 0) + 1)
local stamp = format('%014x', number)
if not stored[1] then call('HSET', meta, 'rules', rules) end
call('HSET', meta, 'stamp', format('%.0f', number))
local lines = {}
for window = 1, windows do
  local ranks, stamps = KEYS[2 * window + 1], KEYS[2 * window + 2]
  local at = FIXED_ARGUMENTS + WINDOW_ARGUMENTS * (window - 1)
  local value, member, changed = values[window], old_members[window], 0
  if value ~= olds[window] then
    -- The new member first: an empty key would disappear, and could not be used again while its slot is being moved.
    call('ZADD', ranks, format('%.0f', value), stamp .. name)
    if member then call('ZREM', ranks, member) end
    member, changed = stamp .. name, 1
    call('HSET', stamps, name, stamp)
    if not olds[window] and ARGV[at + 4] ~= '0' then
      call('PEXPIREAT', ranks, ARGV[at + 4])
      call('PEXPIREAT', stamps, ARGV[at + 4])
    end
  end
  lines[window] = format('%.0f %.0f %.0f %d %s', call('ZRANK', ranks, member) + 1, direction * value,
    call('ZCARD', ranks), changed, ARGV[at + 1])
end
local answer = table.concat(lines, '\n')
call('SET', answer_key, submit .. '\n' .. answer, 'PX', answer_ttl)
return {'ok', answer}
