-- Records that all parts of a cross-partition send are delivered.
-- KEYS[1] split: the record of the send  [2] splits: the unfinished sends, as in mail_begin
-- ARGV[1] id  [2] indices of each recipient's first message, separated by spaces  [3] ms that these are kept
-- Reply: 1; 0 if it was finished or given up before.
local ENCODED, INDICES = 'p', 'i'
local split, splits = KEYS[1], KEYS[2]
local id, indices, lifetime = ARGV[1], ARGV[2], ARGV[3]
-- The first write removes something: Redis allows that at maxmemory.
redis.call('ZREM', splits, id)
if redis.call('HDEL', split, ENCODED) == 0 then return 0 end
redis.call('HSET', split, INDICES, indices)
redis.call('PEXPIRE', split, lifetime)
return 1
