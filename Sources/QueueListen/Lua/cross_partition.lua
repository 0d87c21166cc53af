-- Sends across partitions. Such a send is recorded in its home, the partition of its id, before any part of it is
-- delivered, so that any process can finish it.

-- The fields of the record of a send.
--   FINGERPRINT  of messages and recipients
--   ENCODED      the encoded send, until it is finished
--   INDICES      then the indices of each recipient's first message, separated by spaces
local FINGERPRINT, ENCODED, INDICES = 'f', 'p', 'i'

-- Records a cross-partition send in its home partition, before any part of it is delivered.
-- KEYS   [1] meta  [2] split: the record of the send, a hash  [3] splits: the unfinished sends, a sorted set of their
--        ids by ms when they were begun or last taken over
-- ARGV   [1] partitions  [2] id  [3] fingerprint of messages and recipients  [4] the encoded send  [5] ms after which
--        it is given up
-- Reply  {'ok'}: it must be delivered, now or again; {'ok', indices}: it is finished
-- Refuses {'conflict'}: the id was used for another send; and as described at LAYOUT
-- Bounded: one send.
function entry.begin(keys, arguments)
  local meta, split, splits = keys[1], keys[2], keys[3]
  local partitions, id, fingerprint, encoded = arguments[1], arguments[2], arguments[3], arguments[4]
  local lifetime = arguments[5]
  local is_partition_new = check_layout(meta, partitions)
  local fields = redis.pcall('HMGET', split, FINGERPRINT, INDICES)
  if fields.err then return {'foreign', split} end
  local known, indices = fields[1], fields[2]
  if known then
    if known ~= fingerprint then return {'conflict'} end
    return {'ok', indices or nil}
  end
  if type(redis.pcall('ZCARD', splits)) == 'table' then return {'foreign', splits} end
  local now = read_time()
  redis.call('HSET', split, FINGERPRINT, fingerprint, ENCODED, encoded)
  redis.call('PEXPIRE', split, lifetime)
  redis.call('ZADD', splits, string.format('%d', now), id)
  if is_partition_new then write_layout(meta, partitions) end
  return {'ok'}
end

-- Records that all parts of a recorded send are delivered.
-- KEYS   [1] record: that of the send  [2] unfinished: the ids of the unfinished sends  [3] the answer to the only
--        part, if that was delivered here
-- ARGV   [1] id  [2] indices of each recipient's first message, separated by spaces  [3] ms that these are kept
-- Reply  1; 0 if it was finished or given up before
-- Bounded: one send.
function entry.finish(keys, arguments)
  local record, unfinished, answer = keys[1], keys[2], keys[3]
  local id, indices, lifetime = arguments[1], arguments[2], arguments[3]
  -- The first write removes something: Redis allows that at maxmemory.
  redis.call('ZREM', unfinished, id)
  if redis.call('HDEL', record, ENCODED) == 0 then return 0 end
  redis.call('HSET', record, INDICES, indices)
  redis.call('PEXPIRE', record, lifetime)
  if answer then redis.call('PEXPIRE', answer, lifetime) end
  return 1
end

-- Returns unfinished cross-partition sends that were begun or last taken over ARGV[1] ms ago or earlier, for the caller
-- to finish. They are not returned again until as much time has passed once more.
-- KEYS   [1] splits: the unfinished sends
-- ARGV   [1] ms after which a send is taken over  [2] the maximum number of sends
-- Reply  their ids
-- Bounded: one page of sends.
function entry.take_over(keys, arguments)
  local splits, age, maximum = keys[1], arguments[1], arguments[2]
  local now = read_time()
  local ids = redis.call('ZRANGEBYSCORE', splits, '-inf', string.format('%d', now - age), 'LIMIT', 0, maximum)
  for _, id in ipairs(ids) do redis.call('ZADD', splits, string.format('%d', now), id) end
  return ids
end

-- Returns the time by the clock of a partition's server.
-- KEYS   [1] meta
-- ARGV   none
-- Reply  {'ok', ms since 1970}
function entry.time(keys, arguments)
  local now = read_time()
  return {'ok', string.format('%d', now)}
end
