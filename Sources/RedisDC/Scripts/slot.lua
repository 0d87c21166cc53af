-- The beginning of a request that takes a slot: reads the slot, and answers a request that is not new.
--
-- A session has numbered slots, as in NFS version 4.1 (RFC 8881, section 2.10.6). A slot serves one request at a time,
-- and afterwards the claim that the request has created. Its record keeps the number of its last request. Numbers grow
-- with each request of the session. So a request takes effect once, however often and late it arrives: it is new if
-- its number is greater than the one in the record, repeated if it is equal, and stale if it is less. A client reuses a
-- slot when it has received the reply and the claim has ended. That also confirms the arrival of consumed permits.
--
-- Only the first request in a slot checks that the session is alive. Until an expired session is swept it can still use
-- its slots: what it gets there is swept like the rest, and its process has given up by its own clock before.
--
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] NUMBER of the request
--   [3] the resource's field: t:NAME
--   [4] and the following: see each operation
-- Reply: see each operation, or a refusal:
--   {'lost'}: the session does not exist, for example because the data was lost; {'lost', 'ended'}: it has expired
--   {'stale'}: the slot has served a later request
--   {'occupied'}: the slot has a claim that waits or holds
--   {'family', FAMILY}: the script of this family must run instead
-- Adding 0 converts text to a number with fewer instructions than tonumber.
local slot_field, number, resource_field = ARGV[1], ARGV[2] + 0, ARGV[3]
local slot = call('HGET', state, slot_field)
local slot_state, slot_number = DONE, 0
local now, tick
-- The session's field and record, if the record must be written because the slot is new.
local session_field, session_record
-- A shorter record is damaged, and the slot counts as new.
if slot and #slot >= SLOT_SIZE then
  slot_state, slot_number = decode(SLOT, slot)
  if number < slot_number then return {'stale'} end
else
  local sid, slot_of_session = string.match(slot_field, '^c:(.*):(%d+)$')
  session_field = SESSION_FIELD .. sid
  local session = call('HGET', state, session_field)
  if not session or #session ~= SESSION_SIZE then return {'lost'} end
  local expires, notices, slots = decode(SESSION, session)
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
  if expires <= now then
    -- From now on it has expired for every script.
    call('HDEL', state, '')
    call('HSET', state, session_field, encode(SESSION, 0, notices, slots))
    return {'lost', 'ended'}
  end
  local slots_used = slot_of_session + 1
  if slots_used > slots then session_record = encode(SESSION, expires, notices, slots_used) end
end
