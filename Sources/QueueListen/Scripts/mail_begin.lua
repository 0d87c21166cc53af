-- Writes down a send across partitions before any of it is carried out, in the partition of its id.
-- KEYS[1] meta  [2] split: hash  f  fingerprint, p  the parcel, i  when all have it: the indices of each recipient's first
--     message, separated by spaces  [3] splits: sorted set, ids of sends that are not finished by ms when they were begun,
--     or taken over
-- ARGV[1] partitions  [2] id  [3] fingerprint of what is sent to whom  [4] parcel  [5] ms after which it is given up
-- Reply: {'ok'}: it is to be carried out, now or again; {'ok', indices}: it was; {'conflict'}: the id was used for
--     something else; or a refusal as in mail_head.
local partitions = redis.pcall('HGET', KEYS[1], 'partitions')
if type(partitions) == 'table' then return {'foreign', KEYS[1]} end
if partitions and partitions ~= ARGV[1] then return {'partitions', partitions} end
local found = redis.pcall('HMGET', KEYS[2], 'f', 'i')
if found.err then return {'foreign', KEYS[2]} end
if found[1] then
  if found[1] ~= ARGV[3] then return {'conflict'} end
  return {'ok', found[2] or nil}
end
if type(redis.pcall('ZCARD', KEYS[3])) == 'table' then return {'foreign', KEYS[3]} end
local time = redis.call('TIME')
redis.call('HSET', KEYS[2], 'f', ARGV[3], 'p', ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
redis.call('ZADD', KEYS[3], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), ARGV[2])
if not partitions then redis.call('HSET', KEYS[1], 'partitions', ARGV[1]) end
return {'ok'}
