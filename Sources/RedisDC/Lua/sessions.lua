-- Sessions. Each process that uses a partition has a session, which lasts as long as the process sends heartbeats. All
-- claims of the process belong to its session: when it expires, others sweep it, which ends its claims.
--
-- A session expires in two steps. When TIME has passed `expires`, the first script that acts on it sets `expires` to 0:
-- then it has expired for every script, whatever TIME is later. The next heartbeat of any session receives it to be
-- swept.

-- How far a fence may be ahead of TIME, in microseconds: a day. The clock is not raised to a greater one.
local MAX_FENCE_LEAD = 86400000000

-- For how long the list of swept sessions is needed, in microseconds.
local SWEPT_TIME = 60000000

-- Returns the field of a slot.
local function field_of_slot(sid, slot)
  return SLOT_FIELD .. sid .. ':' .. string.format('%d', slot)
end

-- Returns the fields of the slots from `first` to `stop` - 1.
local function list_slot_fields(sid, first, stop)
  local fields = {}
  for slot = first, stop - 1 do fields[#fields + 1] = field_of_slot(sid, slot) end
  return fields
end

-- Writes the record of a session.
local function write_session(partition, sid, session)
  redis.call('HSET', partition.state, SESSION_FIELD .. sid, Session.write(session))
end

-- Makes the expiry of a session final, and lists it first among the sessions to be swept.
local function expire_session(partition, sid, session)
  session.expires = 0
  write_session(partition, sid, session)
  redis.call('ZADD', partition.sessions, '0', sid)
end

-- Deletes the record, the description and the listing of a session without slots.
local function delete_session(partition, sid)
  redis.call('HDEL', partition.state, SESSION_FIELD .. sid, ABOUT_FIELD .. sid)
  redis.call('ZREM', partition.sessions, sid)
end

-- Returns whether a session may have expired here: it is stored, or among those that were swept last, or others were
-- swept after it. Otherwise this server has never had it, or has lost it.
local function may_have_expired(state, sid, now)
  if sid == '' then return false end
  local stored = redis.call('HMGET', state, SESSION_FIELD .. sid, 'swept')
  if stored[1] then return true end
  local swept = stored[2] or '0'
  if string.find(swept, ' ' .. sid .. ':', 1, true) then return true end
  local is_complete = tonumber(string.match(swept, '^%d+') or now) < now - SWEPT_TIME
  return not is_complete
end

-- Asks sessions, by the message `look`, to send a heartbeat immediately.
local function publish_look(partition, sids)
  for i = 1, #sids do redis.call('PUBLISH', wake_channel(partition.state) .. sids[i], 'look') end
end
