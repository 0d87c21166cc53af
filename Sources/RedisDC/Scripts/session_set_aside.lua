-- Sets a claim of an expired session aside, because the script that ends it has failed several times: the record of its
-- resource is damaged. Without this the session would be swept again every second, without end. Anyone may run it.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID of the expired session
--   [2] SLOT
--   [3] NUMBER of the claim
-- Reply: 1; 0: there is no such claim; {'alive'}: no sweep has ended the session.
local sid, slot_field = ARGV[1], SLOT_FIELD .. ARGV[1] .. ':' .. ARGV[2]
local stored = call('HMGET', state, SESSION_FIELD .. sid, slot_field)
local session, record = stored[1], stored[2]
if session and #session == SESSION_SIZE and decode(NUMBER, session) > 0 then return {'alive'} end
if not record or #record < SLOT_SIZE then return 0 end
local _, number = decode(SLOT, record)
if number ~= tonumber(ARGV[3]) then return 0 end
-- A deletion first, after which Redis allows the write also at maxmemory.
call('HDEL', state, slot_field)
call('HSET', state, ASIDE_FIELD .. sid .. ':' .. ARGV[2] .. ':' .. ARGV[3], record)
return 1
