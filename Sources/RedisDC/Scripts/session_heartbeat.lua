-- Extends the session, compares what the session has seen with what is stored, and hands out maintenance work.
-- KEYS: state, index, sessions
-- ARGV
--   [1] SID
--   [2] ttl: microseconds that the session lasts from now
--   [3] SLOT, or empty, and [4] NUMBER of the last request that was answered after it had written to its slot. If the
--       slot does not show it, the server has lost data: a promoted replica lacks the end of the history, never a part
--       in between.
-- Reply: {'ok', notices (see s:SID), 1 if data was lost, expired, rechecks}, or a refusal as in slot.lua.
--   expired: {SID, …}, expired sessions for session_sweep. Nobody else gets them for a second.
--   rechecks: {NAME, …}, resources for recheck.lua
local sid = ARGV[1]
local session = call('HGET', state, SESSION_FIELD .. sid)
if not session then return {'lost'} end
local expires, notices, slots = decode(SESSION, session)
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if expires <= now then return {'lost', 'ended'} end
-- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
call('HDEL', state, '')
expires = now + tonumber(ARGV[2])
call('HSET', state, SESSION_FIELD .. sid, encode(SESSION, expires, notices, slots))
call('ZADD', sessions, format('%d', expires), sid)
local is_data_lost = 0
if ARGV[3] ~= '' then
  local slot = call('HGET', state, SLOT_FIELD .. sid .. ':' .. ARGV[3])
  local _, slot_number = DONE, 0
  if slot then _, slot_number = decode(SLOT, slot) end
  if slot_number < tonumber(ARGV[4]) then is_data_lost = 1 end
end
-- An expired session is hidden from others for a second: its negative score is the time until then.
local expired = call('ZRANGEBYSCORE', sessions, format('%d', -now), format('%d', now), 'LIMIT', '0', '64')
for i = 1, #expired do call('ZADD', sessions, format('%d', -now - 1000000), expired[i]) end
local rechecks = call('ZRANGEBYLEX', index, '[' .. RECHECK_LINE, '(' .. ENTERING_LINE, 'LIMIT', '0', '16')
for i = 1, #rechecks do rechecks[i] = string.sub(rechecks[i], 2) end
return {'ok', notices, is_data_lost, expired, rechecks}
