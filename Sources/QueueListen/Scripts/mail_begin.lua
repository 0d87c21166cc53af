-- Records a cross-partition send in its home partition, before any part of it is delivered.
-- KEYS[1] meta  [2] split: the record of the send, a hash: f  fingerprint, p  the encoded send until it is finished, i
--     then the indices of each recipient's first message, separated by spaces  [3] splits: the unfinished sends, a
--     sorted set of their ids by ms when they were begun or last taken over
-- ARGV[1] partitions  [2] id  [3] fingerprint of messages and recipients  [4] the encoded send  [5] ms after which it
--     is given up
-- Reply: {'ok'}: it must be delivered, now or again; {'ok', indices}: it is finished; {'conflict'}: the id was used for
--     another send; or a refusal as in mail_head.
local FINGERPRINT, ENCODED, INDICES = 'f', 'p', 'i'
local meta, split, splits = KEYS[1], KEYS[2], KEYS[3]
local id, fingerprint, encoded, lifetime = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local partitions = redis.pcall('HGET', meta, 'partitions')
if type(partitions) == 'table' then return {'foreign', meta} end
-- As in mail_head.
local layout = ARGV[1] .. ' layout 2'
if partitions and partitions ~= layout then return {'partitions', partitions} end
local fields = redis.pcall('HMGET', split, FINGERPRINT, INDICES)
if fields.err then return {'foreign', split} end
local known, indices = fields[1], fields[2]
if known then
  if known ~= fingerprint then return {'conflict'} end
  return {'ok', indices or nil}
end
if type(redis.pcall('ZCARD', splits)) == 'table' then return {'foreign', splits} end
local time = redis.call('TIME')
redis.call('HSET', split, FINGERPRINT, fingerprint, ENCODED, encoded)
redis.call('PEXPIRE', split, lifetime)
redis.call('ZADD', splits, string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)), id)
if not partitions then redis.call('HSET', meta, 'partitions', layout) end
return {'ok'}
