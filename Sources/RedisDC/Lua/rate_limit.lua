-- Rate limiters: the generic cell rate algorithm (ITU-T I.371). A limiter is a bucket that each passage fills, and that
-- drains with time. One key holds one number: the time when the bucket will be empty.

-- Returns the time when the bucket will be empty, from now to the time of a full bucket, in microseconds.
local function read_empty_at(key, now, full_interval)
  -- A later time was written before a step of the clock, or with a larger burst.
  return math.min(now + full_interval, math.max(now, tonumber(redis.call('GET', key) or 0) or 0))
end

-- Writes the time when the bucket will be empty, `backlog` microseconds from now. The key expires then.
local function write_backlog(key, now, backlog)
  local ttl = string.format('%.0f', math.ceil(backlog / 1000))
  redis.call('SET', key, string.format('%.0f', now + backlog), 'PX', ttl)
end

-- Admits passages, or replies how long the caller must wait.
-- KEYS
--   [1] empty_at: the time when the bucket will be empty, in microseconds of Redis's clock. The key expires when the
--       time has passed.
-- ARGV
--   [1] interval: microseconds for each passage
--   [2] burst: maximum number of passages at once
--   [3] cost: number of passages asked for
-- Reply: {1 if they may pass, else 0, microseconds until they could pass, number of passages that could follow now}.
-- Bounded: one record.
function entry.rate_limit(keys, arguments)
  local empty_at_key = keys[1]
  local interval, burst, cost = tonumber(arguments[1]), tonumber(arguments[2]), tonumber(arguments[3])
  local now = read_time()
  local empty_at = read_empty_at(empty_at_key, now, burst * interval)
  -- Differences first: they are exact, however far away that time is.
  local backlog = empty_at - now
  local wait = backlog + (cost - burst) * interval
  if wait > 0 then
    return {0, string.format('%.0f', math.ceil(wait)), math.max(0, math.floor(burst - backlog / interval))}
  end
  -- In whole microseconds, rounded up, so that even the smallest cost counts.
  write_backlog(empty_at_key, now, backlog + math.max(1, math.ceil(cost * interval)))
  return {1, '0', math.max(0, math.floor(burst - cost - backlog / interval))}
end
