-- Names sends across partitions that were begun long ago and are not finished. Who asks is to finish them: nobody else is
-- told of them for as long again.
-- KEYS[1] splits, as in mail_begin
-- ARGV[1] ms that are long  [2] most of them
-- Reply: their ids.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[1]), 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], string.format('%.0f', now), id) end
return ids
