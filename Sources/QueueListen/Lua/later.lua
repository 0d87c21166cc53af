-- Sends that are due later. Such a send is recorded in its home, the partition of its id, and any process carries it
-- out when it is due, as it finishes a cross-partition send: with `finish` at the end.

-- The further fields of the record of a send that is due later.
--   DUE        ms since 1970 when it is due
--   CALLS      the calls that have recorded it, 8 random bytes each: the last one, and those before it whose sends were
--              cancelled. A late copy of one of them does not record it again
--   CANCELLED  1 if it was cancelled
local DUE, CALLS, CANCELLED = 'd', 'c', 'x'
-- The size of one call, and the maximum size of CALLS.
local CALL_SIZE, MAX_CALLS = 8, 128

-- Writes the record of a send that is due later.
local function write_later(record, later, id, fingerprint, encoded, due, calls, lifetime)
  local time = string.format('%d', due)
  redis.call('HSET', record, FINGERPRINT, fingerprint, ENCODED, encoded, DUE, time, CALLS,
    string.sub(calls, 1, MAX_CALLS))
  redis.call('HDEL', record, CANCELLED)
  redis.call('PEXPIREAT', record, string.format('%d', due + lifetime))
  redis.call('ZADD', later, time, id)
end

-- Records a send that is due later. The same call has one effect, and a call for the same send changes nothing.
-- KEYS   [1] meta  [2] record: the record of the send, a hash  [3] later: the sends that are not finished, a sorted set
--        of their ids by ms when they are due or may be taken again
-- ARGV   [1] partitions  [2] id  [3] fingerprint of messages and recipients  [4] the encoded send  [5] the call: 8
--        random bytes  [6] ms since 1970 when it is due, or '' if [7] says it  [7] ms from now until it is due  [8] ms
--        after which it is given up, from when it is due  [9] the maximum number of sends in `later`
-- Reply  {'ok', ms since 1970 when it is due, us since 1970 now, 1 if this call has recorded it now, otherwise 0}
-- Refuses {'conflict'}: the id was used for another send; {'full'}: too many sends are waiting; and as described at
--        LAYOUT
-- Bounded: one send.
function entry.schedule(keys, arguments)
  local meta, record, later = keys[1], keys[2], keys[3]
  local partitions, id, fingerprint, encoded = arguments[1], arguments[2], arguments[3], arguments[4]
  local call, at, pause, lifetime, maximum = arguments[5], arguments[6], arguments[7], arguments[8], arguments[9]
  local is_partition_new = check_layout(meta, partitions)
  local fields = redis.pcall('HMGET', record, FINGERPRINT, DUE, CALLS, CANCELLED)
  if fields.err then return {'foreign', record} end
  local known, due, calls, is_cancelled = fields[1], fields[2], fields[3] or '', fields[4]
  local now = read_exact_time()
  local is_repeated = string.find(calls, call, 1, true)
  if known and not is_repeated and not is_cancelled and known ~= fingerprint then return {'conflict'} end
  local is_new = not known or is_cancelled and not is_repeated
  if is_new then
    local count = redis.pcall('ZCARD', later)
    if type(count) == 'table' then return {'foreign', later} end
    if count >= tonumber(maximum) then return {'full'} end
    due = at == '' and math.ceil(now + pause) or tonumber(at)
    write_later(record, later, id, fingerprint, encoded, due, call .. calls, lifetime)
    if is_partition_new then write_layout(meta, partitions) end
  end
  return {'ok', string.format('%d', due), string.format('%d', now * 1000), is_new and 1 or 0}
end

-- Takes sends that are due, for the caller to carry out. A send that is not finished then can be taken again later.
-- KEYS   [1] later: the sends that are not finished
-- ARGV   [1] ms after which a send may be taken again  [2] the maximum number of sends
-- Reply  {us since 1970 now, ms since 1970 when the next send is due or may be taken or '' if there is none, ids…}
-- Bounded: one page of sends.
function entry.take_due(keys, arguments)
  local later, pause, maximum = keys[1], arguments[1], arguments[2]
  local now = read_exact_time()
  local ids = redis.call('ZRANGEBYSCORE', later, '-inf', string.format('%d', now), 'LIMIT', 0, maximum)
  for _, id in ipairs(ids) do redis.call('ZADD', later, string.format('%d', now + pause), id) end
  local first = redis.call('ZRANGEBYSCORE', later, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local reply = {string.format('%d', now * 1000), first[2] and string.format('%d', first[2]) or ''}
  for _, id in ipairs(ids) do reply[#reply + 1] = id end
  return reply
end

-- Cancels a send that is due later, unless it was taken to be carried out. Repeated, it replies the same.
-- KEYS   [1] record: the record of the send  [2] later: the sends that are not finished
-- ARGV   [1] id  [2] ms that the record is kept  [3] the call that has recorded the send, if Redis may have lost that:
--        then only this one is cancelled, also if it arrives later. '' for any
-- Reply  {1, the last call that has recorded it, 1 if it was cancelled now, otherwise 0}; {0}: it was taken, is
--        finished or is not known
-- Refuses {'foreign', KEY} as described at LAYOUT
-- Bounded: one send.
function entry.cancel(keys, arguments)
  local record, later = keys[1], keys[2]
  local id, lifetime, call = arguments[1], arguments[2], arguments[3]
  local fields = redis.pcall('HMGET', record, ENCODED, DUE, CALLS, CANCELLED)
  if fields.err then return {'foreign', record} end
  local encoded, due, calls, is_cancelled = fields[1], fields[2], fields[3], fields[4]
  local last = calls and string.sub(calls, 1, CALL_SIZE)
  if call == '' and not last or call ~= '' and last and last ~= call then return {0} end
  if is_cancelled then return {1, last, 0} end
  if last then
    local score = redis.pcall('ZSCORE', later, id)
    if type(score) == 'table' then return {'foreign', later} end
    if not encoded or not score or tonumber(score) ~= tonumber(due) then return {0} end
    -- The first write removes something: Redis allows that at maxmemory.
    redis.call('ZREM', later, id)
    redis.call('HDEL', record, ENCODED)
    redis.call('HSET', record, CANCELLED, '1')
  else
    redis.call('HSET', record, FINGERPRINT, '', DUE, '0', CALLS, call, CANCELLED, '1')
  end
  redis.call('PEXPIRE', record, lifetime)
  return {1, last or call, 1}
end
