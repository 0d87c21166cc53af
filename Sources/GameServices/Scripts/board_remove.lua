-- Removes an entry from windows of a leaderboard.
--
-- KEYS for each window: ranks, stamps: see board_submit.lua
-- ARGV[1] name
-- Reply: the number of windows that had the entry.
local name, removed = ARGV[1], 0
for window = 1, #KEYS / 2 do
  local ranks, stamps = KEYS[2 * window - 1], KEYS[2 * window]
  local stamp = redis.call('HGET', stamps, name)
  if stamp then
    redis.call('ZREM', ranks, stamp .. name)
    redis.call('HDEL', stamps, name)
    removed = removed + 1
  end
end
return removed
