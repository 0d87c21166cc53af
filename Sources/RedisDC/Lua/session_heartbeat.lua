-- The heartbeat of a session: extends it, detects lost data, and hands out maintenance work.

-- The maximum numbers of expired sessions and of resources to recheck in one reply; the latter as a text too.
local MAX_EXPIRED, MAX_RECHECKS, MAX_RECHECKS_TEXT = '64', 16, '16'
-- How long an expired session is hidden from other heartbeats, in microseconds.
local HIDDEN = 1000000

-- Returns the notices of a session after a heartbeat on this connection: they start again with each connection, see
-- CONNECTION.
local function continue_notices(notices, connection)
  local first_notice = connection * CONNECTION
  if notices >= first_notice and notices < MAX_TICK then return notices end
  return first_notice
end

-- Raises the clock to a fence that the session has seen, so that later fences are higher, whatever data and time a
-- promoted replica has. A fence that is more than MAX_FENCE_LEAD ahead is ignored.
local function raise_clock(state, now, fence)
  local clock = redis.call('HGET', state, 'clock')
  local tick = clock and #clock == #NEVER and struct.unpack(NUMBER_FORMAT, clock) or -1
  if fence > now + MAX_FENCE_LEAD then fence = 0 end
  if not (tick >= fence and tick < MAX_TICK) then
    if not (tick >= 0 and tick < MAX_TICK) then tick = now end
    redis.call('HSET', state, 'clock', struct.pack(NUMBER_FORMAT, math.max(tick, fence)))
  end
end

-- Returns whether a slot is HELD on a mutex that was released: neither the record of the mutex nor a line names the
-- claim (release_mutex).
local function has_released_mutex(partition, stored_slot, id)
  local mode = claim_mode(stored_slot)
  if slot_state(stored_slot) ~= HELD or mode ~= SOLE and mode ~= COHORT then return false end
  local resource = redis.call('HGET', partition.state, claimed_field(stored_slot))
  return (not resource or tail_of_resource(resource) ~= id)
    and not redis.call('ZSCORE', partition.index, holder_line(claimed_name(stored_slot), id))
end

-- Returns whether a slot does not show the last answered request in it: then the server has lost data. A promoted
-- replica lacks the end of the history, never a part in between. is_end: the number is that of a claim whose end was
-- answered.
local function is_change_lost(partition, sid, slot_text, number_text, is_end)
  local stored = redis.call('HGET', partition.state, SLOT_FIELD .. sid .. ':' .. slot_text)
  local number = tonumber(number_text)
  local slot = Slot.new({state = DONE, number = 0})
  if stored then Slot.read_into(slot, stored) end
  if slot.number ~= number then return slot.number < number end
  if not is_end or slot.state == DONE then return false end
  local has_ended = has_released_mutex(partition, stored, sid .. ':' .. slot_text .. ':' .. number_text)
  return not has_ended
end

-- Returns expired sessions, and hides each from other heartbeats for HIDDEN: its negative score is the end of this
-- time.
local function take_expired_sessions(partition, now)
  local expired = redis.call('ZRANGEBYSCORE', partition.sessions,
    string.format('%d', -now), string.format('%d', now), 'LIMIT', '0', MAX_EXPIRED)
  if #expired == 0 then
    -- Sessions that were hidden when the clock was ahead.
    expired = redis.call('ZRANGEBYSCORE', partition.sessions, '-inf', string.format('(%d', -now - HIDDEN),
      'LIMIT', '0', MAX_EXPIRED)
  end
  for i = 1, #expired do
    redis.call('ZADD', partition.sessions, string.format('%d', -now - HIDDEN), expired[i])
  end
  return expired
end

-- Returns names of resources to recheck, which follow those of the last heartbeat, and after the last name begin again
-- with the first one. A name whose recheck fails, because its record is damaged, stays and must not block the others.
local function take_rechecks(partition, rechecked)
  local rechecks = redis.call('ZRANGEBYLEX', partition.index, '(' .. RECHECK_LINE .. rechecked, '(' .. ENTERING_LINE,
    'LIMIT', '0', MAX_RECHECKS_TEXT)
  if #rechecks == 0 and rechecked ~= '' then
    rechecks = redis.call('ZRANGEBYLEX', partition.index, '[' .. RECHECK_LINE, '(' .. ENTERING_LINE,
      'LIMIT', '0', MAX_RECHECKS_TEXT)
  end
  for i = 1, #rechecks do rechecks[i] = string.sub(rechecks[i], 2) end
  local last = #rechecks == MAX_RECHECKS and rechecks[MAX_RECHECKS] or ''
  if last ~= rechecked then redis.call('HSET', partition.state, 'rechecked', last) end
  return rechecks
end

-- Extends the session, compares what the session has seen with what is stored, and hands out maintenance work.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID
--   [2] ttl: microseconds that the session lasts from now
--   [3] SLOT and [4] NUMBER of the last request that was answered after it had written to its slot; with 1 as [5], of
--       the last claim whose end was answered. If the slot does not show it, the server has lost data. Or [3] empty.
--   [6] fence: the highest that the session has seen
--   [7] connection: the number of the process's connection, which grows with each one and has notices of its own.
-- Reply: {'ok', notices (see Session), 1 if data was lost, expired, rechecks, 1 if list_sessions must run, next: see
--   keep_watch}, or a refusal: {'lost'}: the session does not exist, {'lost', 'ended'}: it has expired.
--   expired: {SID, …}, expired sessions for sweep. No other heartbeat receives them for a second.
--   rechecks: {NAME, …}, resources for recheck
function entry.heartbeat(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], sessions = keys[3]})
  local sid, ttl, changed_slot = arguments[1], tonumber(arguments[2]), arguments[3]
  local stored = redis.call('HMGET', partition.state, SESSION_FIELD .. sid, 'watchers', 'rechecked')
  local stored_session, watchers, rechecked = stored[1], stored[2], stored[3] or ''
  if not is_session(stored_session) then return {'lost'} end
  local session = Session.read(stored_session)
  local now = read_time()
  allow_writes(partition.state)
  if session.expires <= now then
    -- From now on it has expired for every script, and is swept by the next heartbeat.
    expire_session(partition, sid, session)
    return {'lost', 'ended'}
  end
  session.expires = now + ttl
  session.notices = continue_notices(session.notices, arguments[7] or 0)
  write_session(partition, sid, session)
  -- A session that is not listed yet has only just joined, or somebody has deleted the list.
  local is_unlisted = redis.call('ZADD', partition.sessions, string.format('%d', session.expires), sid)
  raise_clock(partition.state, now, tonumber(arguments[6] or 0))
  local is_data_lost = false
  if changed_slot ~= '' then
    is_data_lost = is_change_lost(partition, sid, changed_slot, arguments[4], arguments[5] == '1')
  end
  local expired = take_expired_sessions(partition, now)
  local rechecks = take_rechecks(partition, rechecked)
  local next_heartbeat = keep_watch(partition, sid, ttl, now, watchers)
  return {'ok', session.notices, is_data_lost and 1 or 0, expired, rechecks, is_unlisted, next_heartbeat}
end
