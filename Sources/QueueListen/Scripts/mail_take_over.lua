-- Returns unfinished cross-partition sends that were begun or last taken over ARGV[1] ms ago or earlier, for the caller
-- to finish. They are not returned again until as much time has passed once more.
-- KEYS[1] splits: the unfinished sends, as in mail_begin
-- ARGV[1] ms after which a send is taken over  [2] the maximum number of sends
-- Reply: their ids.
local splits, age, maximum = KEYS[1], ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', splits, '-inf', string.format('%d', now - age), 'LIMIT', 0, maximum)
for _, id in ipairs(ids) do redis.call('ZADD', splits, string.format('%d', now), id) end
return ids
