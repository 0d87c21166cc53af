-- The generic cell rate algorithm (ITU-T I.371): one number says when the bucket will be empty.
-- KEYS
--   [1] empty_at: that time, in microseconds of Redis's clock. The key expires when the time has passed.
-- ARGV
--   [1] interval: microseconds for each passage
--   [2] burst: maximum number of passages at once
--   [3] cost: number of passages asked for
-- Reply: {1 if they may pass, else 0, microseconds until they could pass, number of passages that could follow now}.
local interval, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- A later time than after a full burst is of before a step of the clock, or of another burst.
local empty_at = math.min(now + burst * interval, math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0) or 0))
-- Differences first: they are exact, however far away that time is.
local backlog = empty_at - now
local wait = backlog + (cost - burst) * interval
if wait > 0 then
  return {0, string.format('%.0f', math.ceil(wait)), math.max(0, math.floor(burst - backlog / interval))}
end
-- In whole microseconds, rounded up, so that even the smallest cost counts.
local new_backlog = backlog + math.max(1, math.ceil(cost * interval))
local ttl = string.format('%.0f', math.ceil(new_backlog / 1000))
redis.call('SET', KEYS[1], string.format('%.0f', now + new_backlog), 'PX', ttl)
return {1, '0', math.max(0, math.floor(burst - cost - backlog / interval))}
