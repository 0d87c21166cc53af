-- Sends that are due later. Such a send is recorded in its home, the partition of its id, and any process carries it
-- out when it is due, as it finishes a cross-partition send: with `finish` at the end. A recurring send is recorded
-- with the time of its next occurrence. When that is due, `advance` makes it a send of its own that is due.

-- The further fields of the record of a send that is due later.
--   DUE        ms since 1970 when it is due
--   CALLS      the calls that have recorded it, 8 random bytes each: the last one, and those before it whose sends were
--              cancelled. A late copy of one of them does not record it again
--   CANCELLED  1 if it was cancelled
--   RULE       when it recurs, and what happens to missed occurrences; none if it is sent once
--   VERSION    of a recurring send: how often it was recorded
local DUE, CALLS, CANCELLED, RULE, VERSION = 'd', 'c', 'x', 'r', 'v'
-- The size of one call, and the maximum size of CALLS.
local CALL_SIZE, MAX_CALLS = 8, 512

-- Writes the record of a send that is due later. That of a recurring send does not expire.
local function write_later(record, later, id, fingerprint, encoded, due, calls, lifetime, rule, version, now)
  local time = string.format('%d', due)
  redis.call('HSET', record, FINGERPRINT, fingerprint, ENCODED, encoded, DUE, time, CALLS,
    string.sub(calls, 1, MAX_CALLS))
  redis.call('HDEL', record, CANCELLED, RULE, VERSION)
  if rule == '' then
    redis.call('PEXPIREAT', record, string.format('%d', math.max(due, now) + lifetime))
  else
    redis.call('HSET', record, RULE, rule, VERSION, version)
    redis.call('PERSIST', record)
  end
  redis.call('ZADD', later, time, id)
end

-- Records a send that is due later, or a recurring send, which replaces a recurring one. The same call has one effect,
-- and a call for the same send changes nothing.
-- KEYS   [1] meta  [2] record: the record of the send, a hash  [3] later: the sends that are not finished, a sorted set
--        of their ids by ms when they are due or may be taken again
-- ARGV   [1] partitions  [2] id  [3] fingerprint of messages and recipients  [4] the encoded send  [5] the call: 8
--        random bytes  [6] ms since 1970 when it is due, or '' if [7] says it  [7] ms from now until it is due  [8] ms
--        after which it is given up, from when it is due, or from now if that is over  [9] the maximum number of sends
--        in `later`  [10] the rule of a recurring send, or ''  [11] of a recurring send the version, if Redis has
--        confirmed it and may have lost it; '' if it is new: then the time must not be over, because it may be that of
--        an occurrence that was sent
-- Reply  {'ok', ms since 1970 when it is due, us since 1970 now, version or 0, 1 if this call has recorded it now,
--        otherwise 0}; {'over', us since 1970 now}: nothing was recorded
-- Refuses {'conflict'}: the id was used for another send; {'full'}: too many sends are waiting; and as described at
--        LAYOUT
-- Bounded: one send.
function entry.schedule(keys, arguments)
  local meta, record, later = keys[1], keys[2], keys[3]
  local partitions, id, fingerprint, encoded = arguments[1], arguments[2], arguments[3], arguments[4]
  local call, at, pause, lifetime, maximum = arguments[5], arguments[6], arguments[7], arguments[8], arguments[9]
  local rule, lost = arguments[10], tonumber(arguments[11])
  local is_partition_new = check_layout(meta, partitions)
  local fields = redis.pcall('HMGET', record, FINGERPRINT, DUE, CALLS, CANCELLED, RULE, VERSION)
  if fields.err then return {'foreign', record} end
  local known, due, calls, is_cancelled, known_rule = fields[1], fields[2], fields[3] or '', fields[4], fields[5]
  local version = tonumber(fields[6] or 0)
  local now = read_exact_time()
  local is_repeated = string.find(calls, call, 1, true)
  local is_waiting = known and not is_cancelled
  local is_same = known == fingerprint and (known_rule or '') == rule
  if is_waiting and not is_repeated and not is_same and not (known_rule and rule ~= '') then return {'conflict'} end
  local is_newer = not is_same and not (lost and lost <= version)
  local is_new = not is_repeated and (not is_waiting or is_newer)
  if is_new then
    local count = redis.pcall('ZCARD', later)
    if type(count) == 'table' then return {'foreign', later} end
    if not is_waiting and count >= tonumber(maximum) then return {'full'} end
    due = at == '' and math.ceil(now + pause) or tonumber(at)
    if rule ~= '' and not lost and due <= now then return {'over', string.format('%d', now * 1000)} end
    version = lost or version + 1
    write_later(record, later, id, fingerprint, encoded, due, call .. calls, lifetime, rule, version, now)
    if is_partition_new then write_layout(meta, partitions) end
  elseif not is_repeated then
    -- A late copy of this call does not record the send again either.
    redis.call('HSET', record, CALLS, string.sub(call .. calls, 1, MAX_CALLS))
  end
  return {'ok', string.format('%d', due), string.format('%d', now * 1000), version, is_new and 1 or 0}
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

-- Makes a due occurrence of a recurring send a send of its own, and records when the next one is due.
-- KEYS   [1] record: the record of the recurring send  [2] later: the sends that are not finished  [3] the record of
--        the occurrence
-- ARGV   [1] id  [2] ms since 1970 when the occurrence was due  [3] that of the next one, or '' if there is none
--        [4] ms that the record is kept if there is no next one  [5] the id of the occurrence, or '' if it is missed
--        [6] its fingerprint  [7] the encoded occurrence  [8] ms after which it is given up  [9] ms after which it may
--        be taken again, if the caller has not delivered it  [10] the maximum number of sends in `later`
-- Reply  {1, 1 if the occurrence is recorded, 0 if it is missed, its id is in use, or too many sends wait}; {0}:
--        another process has done this, or the send was cancelled or replaced
-- Bounded: one send.
function entry.advance(keys, arguments)
  local record, later, occurrence_record = keys[1], keys[2], keys[3]
  local id, due, next_due, kept, occurrence = arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]
  local fingerprint, encoded, lifetime, pause = arguments[6], arguments[7], arguments[8], arguments[9]
  local fields = redis.call('HMGET', record, DUE, ENCODED)
  if fields[1] ~= due or not fields[2] then return {0} end
  local is_known = redis.pcall('HEXISTS', occurrence_record, FINGERPRINT) ~= 0
  local is_full = redis.call('ZCARD', later) >= tonumber(arguments[10])
  local is_missed = occurrence == '' or is_known or is_full
  -- The first write removes something: Redis allows all of them at maxmemory then.
  redis.call('ZREM', later, id)
  if next_due == '' then
    redis.call('HDEL', record, ENCODED)
    redis.call('PEXPIRE', record, kept)
  else
    redis.call('HSET', record, DUE, next_due)
    redis.call('ZADD', later, next_due, id)
  end
  if is_missed then return {1, 0} end
  local now = read_exact_time()
  redis.call('HSET', occurrence_record, FINGERPRINT, fingerprint, ENCODED, encoded, DUE, due)
  redis.call('PEXPIRE', occurrence_record, lifetime)
  redis.call('ZADD', later, string.format('%d', now + pause), occurrence)
  return {1, 1}
end

-- Cancels a send that is due later, unless it was taken to be carried out, or a recurring send. Repeated, it replies
-- the same.
-- KEYS   [1] record: the record of the send  [2] later: the sends that are not finished
-- ARGV   [1] id  [2] ms that the record is kept  [3] the calls that have recorded the send, if Redis may have lost
--        those: then only theirs is cancelled, also if they arrive later. '' for any
-- Reply  {1, the calls that have recorded it, 1 if it was cancelled now, otherwise 0}; {0}: it was taken, is
--        finished or is not known
-- Refuses {'foreign', KEY} as described at LAYOUT
-- Bounded: one send.
function entry.cancel(keys, arguments)
  local record, later = keys[1], keys[2]
  local id, lifetime, cancelled = arguments[1], arguments[2], arguments[3]
  local fields = redis.pcall('HMGET', record, ENCODED, DUE, CALLS, CANCELLED, RULE)
  if fields.err then return {'foreign', record} end
  local encoded, due, calls, is_cancelled, rule = fields[1], fields[2], fields[3], fields[4], fields[5]
  local last = calls and string.sub(calls, 1, CALL_SIZE)
  if cancelled == '' and not last or cancelled ~= '' and last and not string.find(cancelled, last, 1, true) then
    return {0}
  end
  if is_cancelled then return {1, calls, 0} end
  if last then
    local score = redis.pcall('ZSCORE', later, id)
    if type(score) == 'table' then return {'foreign', later} end
    if not encoded or not rule and (not score or tonumber(score) ~= tonumber(due)) then return {0} end
    -- The first write removes something: Redis allows that at maxmemory.
    redis.call('ZREM', later, id)
    redis.call('HDEL', record, ENCODED)
    -- Also those calls that Redis has lost have no effect when they are repeated.
    redis.call('HSET', record, CANCELLED, '1', CALLS, cancelled == '' and calls or cancelled)
  else
    redis.call('HSET', record, FINGERPRINT, '', DUE, '0', CALLS, cancelled, CANCELLED, '1')
  end
  redis.call('PEXPIRE', record, lifetime)
  return {1, calls or cancelled, 1}
end
