-- A write that changes nothing, so that the connection that has made it can wait until replicas, or the disk, have all
-- that the server has carried out before (WAIT, WAITAOF).

-- What a claim or a request must be for its process: HELD, or a change as that of a heartbeat.
local IS_HELD, HAS_ENDED = 'h', 'e'

-- Returns whether a slot shows what its process knows of it.
local function is_known_change(partition, sid, slot_text, number_text, kind)
  if slot_text == '' then return true end
  if kind ~= IS_HELD then
    local is_lost = is_change_lost(partition, sid, slot_text, number_text, kind == HAS_ENDED)
    return not is_lost
  end
  local stored = redis.call('HGET', partition.state, SLOT_FIELD .. sid .. ':' .. slot_text)
  if not stored or #stored < Slot.size then return false end
  local slot = Slot.read(stored)
  return slot.state == HELD and slot.number == tonumber(number_text)
end

-- Writes the record of a session again, and says which changes the server has. What it has is durable as soon as the
-- write is.
--
-- KEYS: state, index
-- ARGV
--   [1] SID
--   then for each change, up to 64: SLOT, NUMBER, and h: the claim of this request is HELD; e: this claim has ended; or
--   w: the slot shows this request or a later one. SLOT may be empty: nothing is looked for.
-- Reply: {'ok', for each change 1 if the server has it, else 0}; {'lost'}: the session does not exist, or has expired.
-- Bounded: 64 records.
function entry.touch(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local sid = arguments[1]
  local stored = redis.call('HGET', partition.state, SESSION_FIELD .. sid)
  if not is_session(stored) then return {'lost'} end
  local session = Session.read(stored)
  local now = read_time()
  if session.expires <= now then return {'lost'} end
  local reply = {'ok'}
  for i = 2, #arguments, 3 do
    local slot_text = arguments[i]
    local is_there = is_known_change(partition, sid, slot_text, arguments[i + 1], arguments[i + 2])
    reply[#reply + 1] = is_there and 1 or 0
  end
  allow_writes(partition.state)
  redis.call('HSET', partition.state, SESSION_FIELD .. sid, stored)
  return reply
end
