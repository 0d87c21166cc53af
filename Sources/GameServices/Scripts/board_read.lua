-- Reads entries of one window of a leaderboard. Changes nothing.
--
-- KEYS[1] ranks, [2] stamps: see board_submit.lua
-- ARGV[1] start and [2] end of the window in microseconds since 1970. End 0: the window need not be the current one.
--     [3] TOP: then the number of entries to skip, and the maximum number of entries
--         AROUND: then a name, and the maximum number of entries, with those on both sides of the name
--         OF: then up to 200 names
-- Reply: {'ok', number of entries of the window, then for each entry: rank, member, score times the direction}.
--     {'window', microseconds since 1970}: the window is not the current one.
local call, format = redis.call, string.format
local TOP, AROUND, OF = 'top', 'around', 'of'
local FIRST_NAME = 4

local ranks, stamps = KEYS[1], KEYS[2]
local first, last, kind = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if last > 0 and (now < first or now >= last) then return {'window', format('%.0f', now)} end

local count = call('ZCARD', ranks)
local reply = {'ok', count}
if kind == OF then
  local names = {unpack(ARGV, FIRST_NAME)}
  local found = #names > 0 and call('HMGET', stamps, unpack(names))
  for number = 1, #names do
    local member = found[number] and found[number] .. names[number]
    local rank = member and call('ZRANK', ranks, member)
    if rank then
      reply[#reply + 1] = rank + 1
      reply[#reply + 1] = member
      reply[#reply + 1] = call('ZSCORE', ranks, member)
    end
  end
  return reply
end

local from, limit = tonumber(ARGV[4]), tonumber(ARGV[5])
if kind == AROUND then
  local name = ARGV[4]
  local stamp = call('HGET', stamps, name)
  local rank = stamp and call('ZRANK', ranks, stamp .. name)
  if not rank then return reply end
  -- At either end, the entries that are missing on one side are taken from the other.
  from = math.max(0, math.min(rank - math.floor((limit - 1) / 2), count - limit))
end
local found = call('ZRANGE', ranks, format('%.0f', from), format('%.0f', from + limit - 1), 'WITHSCORES')
for number = 1, #found, 2 do
  reply[#reply + 1] = from + (number + 1) / 2
  reply[#reply + 1] = found[number]
  reply[#reply + 1] = found[number + 1]
end
return reply
