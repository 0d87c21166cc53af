-- Extends the session, compares what the session has seen with what is stored, and hands out maintenance work.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID
--   [2] ttl: microseconds that the session lasts from now
--   [3] SLOT and [4] NUMBER of the last request that was answered after it had written to its slot; with 1 as [5], of
--       the last claim whose end was answered. If the slot does not show it, the server has lost data: a promoted
--       replica lacks the end of the history, never a part in between. Or [3] empty.
--   [6] fence: the highest that the session has seen
--   [7] connection: the number of the process's connection, which grows with each one and has notices of its own.
-- Reply: {'ok', notices (see s:SID), 1 if data was lost, expired, rechecks, 1 if session_list must run, next: see
--   session_watch.lua}, or a refusal as in slot.lua.
--   expired: {SID, …}, expired sessions for session_sweep. Nobody else gets them for a second.
--   rechecks: {NAME, …}, resources for recheck.lua
local sid, ttl = ARGV[1], tonumber(ARGV[2])
local stored = call('HMGET', state, SESSION_FIELD .. sid, 'watchers', 'rechecked')
local session, watchers, rechecked = stored[1], stored[2], stored[3] or ''
if not session or #session ~= SESSION_SIZE then return {'lost'} end
local expires, notices, slots = decode(SESSION, session)
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if expires <= now then
  -- From now on it has expired for every script, and is swept by the next heartbeat.
  call('HDEL', state, '')
  call('HSET', state, SESSION_FIELD .. sid, encode(SESSION, 0, notices, slots))
  call('ZADD', sessions, '0', sid)
  return {'lost', 'ended'}
end
-- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
call('HDEL', state, '')
expires = now + ttl
local first_notice = (ARGV[7] or 0) * CONNECTION
if not (notices >= first_notice and notices < MAX_TICK) then notices = first_notice end
call('HSET', state, SESSION_FIELD .. sid, encode(SESSION, expires, notices, slots))
-- A session that is not listed yet has only just joined, or somebody has deleted the list.
local is_unlisted = call('ZADD', sessions, format('%d', expires), sid)
-- Later fences are higher than those that the session has seen, whatever data and time a promoted replica has. One that
-- is more than a day ahead is not believed.
local clock = call('HGET', state, 'clock')
local tick = clock and #clock == #NEVER and decode(NUMBER, clock) or -1
local fence = tonumber(ARGV[6] or 0)
if fence > now + 86400000000 then fence = 0 end
if not (tick >= fence and tick < MAX_TICK) then
  if not (tick >= 0 and tick < MAX_TICK) then tick = now end
  call('HSET', state, 'clock', encode(NUMBER, math.max(tick, fence)))
end
local is_data_lost = 0
if ARGV[3] ~= '' then
  local slot = call('HGET', state, SLOT_FIELD .. sid .. ':' .. ARGV[3])
  local slot_state, slot_number = DONE, 0
  if slot then slot_state, slot_number = decode(SLOT, slot) end
  if slot_number < tonumber(ARGV[4]) then
    is_data_lost = 1
  elseif ARGV[5] == '1' and slot_number == tonumber(ARGV[4]) and slot_state ~= DONE then
    local mode = string.sub(slot, 26, 26)
    local is_ended = false
    if slot_state == HELD and (mode == SOLE or mode == COHORT) then
      -- The record of a mutex names the holder: see release_mutex.lua.
      local resource = call('HGET', state, string.sub(slot, 28))
      local claim_id = sid .. ':' .. ARGV[3] .. ':' .. ARGV[4]
      is_ended = (not resource or string.sub(resource, TAIL) ~= claim_id)
        and not call('ZSCORE', index, HOLDER_LINE .. string.sub(slot, 30) .. '\0' .. claim_id)
    end
    if not is_ended then is_data_lost = 1 end
  end
end
-- An expired session is hidden from others for a second: its negative score is the time until then.
local expired = call('ZRANGEBYSCORE', sessions, format('%d', -now), format('%d', now), 'LIMIT', '0', '64')
if #expired == 0 then
  -- Sessions that were hidden when the clock was ahead.
  expired = call('ZRANGEBYSCORE', sessions, '-inf', format('(%d', -now - 1000000), 'LIMIT', '0', '64')
end
for i = 1, #expired do call('ZADD', sessions, format('%d', -now - 1000000), expired[i]) end
-- The names after those of the last heartbeat, and then again from the first one: a name whose recheck fails, because
-- its record is damaged, stays, and must not keep out the others.
local rechecks = call('ZRANGEBYLEX', index, '(' .. RECHECK_LINE .. rechecked, '(' .. ENTERING_LINE, 'LIMIT', '0', '16')
if #rechecks == 0 and rechecked ~= '' then
  rechecks = call('ZRANGEBYLEX', index, '[' .. RECHECK_LINE, '(' .. ENTERING_LINE, 'LIMIT', '0', '16')
end
for i = 1, #rechecks do rechecks[i] = string.sub(rechecks[i], 2) end
local last = #rechecks == 16 and rechecks[16] or ''
if last ~= rechecked then call('HSET', state, 'rechecked', last) end
local reply = {'ok', notices, is_data_lost, expired, rechecks, is_unlisted}
