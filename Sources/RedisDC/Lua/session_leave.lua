-- Ends a session when its process asks for it.

-- The number of slots that one script checks.
local MAX_SLOTS_TO_LEAVE = 1024

-- Returns whether a slot still has a claim.
local function has_claim(state, slot_field, stored)
  if not stored or slot_state(stored) == DONE then return false end
  if claim_mode(stored) ~= SOLE or slot_state(stored) ~= HELD then return true end
  -- The record of the mutex says whether it is held (release_mutex).
  local slot = Slot.read(stored)
  local resource = redis.call('HGET', state, claimed_field(stored))
  if not resource then return false end
  return family_of_resource(resource) ~= PERMITS or tail_of_resource(resource) == id_of_claim(slot_field, slot.number)
end

-- Returns whether no slot of a list has a claim.
local function are_idle(state, fields)
  local is_idle = true
  for i, stored in ipairs(redis.call('HMGET', state, unpack(fields))) do
    local is_occupied = has_claim(state, fields[i], stored)
    if is_occupied then is_idle = false end
  end
  return is_idle
end

-- Removes a session from the field `watchers`. Returns the list of the other watchers as they are stored, their SIDs,
-- and whether the session was a watcher.
local function remove_watcher(watchers, sid)
  local list, others, was_watcher = {}, {}, false
  for other, promise in string.gmatch(watchers, '(%w+)(:%d+:%d+)') do
    if other == sid then
      was_watcher = true
    else
      list[#list + 1] = other .. promise
      others[#others + 1] = other
    end
  end
  return list, others, was_watcher
end

-- Adds sessions that have not expired, other than this one, to a list of at most MAX_WATCHERS.
local function add_lasting_sessions(partition, sid, list)
  local now = read_time()
  local lasting = redis.call('ZRANGEBYSCORE', partition.sessions, string.format('(%d', now), '+inf',
    'LIMIT', '0', '4')
  for i = 1, #lasting do
    if lasting[i] ~= sid and #list < MAX_WATCHERS then list[#list + 1] = lasting[i] end
  end
end

-- Ends a session, and removes it from the watchers. Claims that it still has are ended like those of an expired session
-- (sweep): the message `look` asks the other watchers to do so, or up to three other sessions if there are none. If it
-- was the last watcher, these sessions are asked too, so that one becomes a watcher.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID
-- Reply: 1; {'more', 1} if there are more slots: run it again.
function entry.leave(keys, arguments)
  local partition = Partition.new({state = keys[1], sessions = keys[3]})
  local sid = arguments[1]
  local stored = redis.call('HMGET', partition.state, SESSION_FIELD .. sid, 'watchers')
  local stored_session = stored[1]
  if not is_session(stored_session) then return 1 end
  allow_writes(partition.state)
  local session = Session.read(stored_session)
  local first = math.max(0, session.slots - MAX_SLOTS_TO_LEAVE)
  local fields = list_slot_fields(sid, first, session.slots)
  local is_idle = true
  if session.slots > 0 then is_idle = are_idle(partition.state, fields) end
  if is_idle then
    if session.slots > 0 then redis.call('HDEL', partition.state, unpack(fields)) end
    session.slots = first
  end
  local list, others, was_watcher = remove_watcher(stored[2] or '', sid)
  local is_calling = not is_idle or was_watcher and #others == 0
  -- Before the writes: without this session, the list of sessions may be gone.
  if is_calling and #others == 0 then add_lasting_sessions(partition, sid, others) end
  if session.slots == 0 then
    delete_session(partition, sid)
  else
    expire_session(partition, sid, session)
  end
  if was_watcher then redis.call('HSET', partition.state, 'watchers', table.concat(list, ' ')) end
  if is_calling then publish_look(partition, others) end
  return is_idle and session.slots > 0 and {'more', 1} or 1
end
