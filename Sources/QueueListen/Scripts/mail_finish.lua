-- Notes that all have got a send across partitions.
-- KEYS[1] split  [2] splits, as in mail_begin
-- ARGV[1] id  [2] indices of each recipient's first message, separated by spaces  [3] ms that these are kept
-- Reply: 1, or 0 when it had been finished or given up before.
-- The first to be written takes something away: so it passes at maxmemory.
redis.call('ZREM', KEYS[2], ARGV[1])
if redis.call('HDEL', KEYS[1], 'p') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'i', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
