-- The sweep of expired sessions: lists their claims for the scripts that end them, and deletes the rest. Any process
-- may run these entries, without a session.

-- For the counting of the slots of a corrupt session: slots in a page, and about how many slots one script checks.
local COUNTED_PAGE, MAX_COUNTED = 512, 2048
-- The number of slots in a page of a sweep, and the maximum number of pages in one script.
local SWEPT_PAGE, MAX_SWEPT_PAGES = 128, 8
-- The size of the list of swept sessions from which on each new one takes the place of the oldest: about a hundred.
local MAX_SWEPT_LIST = 4000
-- The greatest number of slots, 2^31: a record with more is corrupt.
local MAX_SLOTS = 2147483648

-- Returns the session of a record. A corrupt one has expired, and its notices are UNCOUNTED until its slots are
-- counted.
local function read_session_to_sweep(stored)
  local session = Session.new({expires = 0, notices = UNCOUNTED, slots = 0})
  if #stored == Session.size then
    Session.read_into(session, stored)
    if session.slots ~= math.floor(session.slots) or session.slots < 0 or session.slots > MAX_SLOTS then
      session.expires = 0
      session.notices = UNCOUNTED
      session.slots = 0
    end
  end
  return session
end

-- Counts the slots of a session whose record was corrupt, and sets its notices to 0 at the end. Slots have no gaps and
-- are deleted from the last to the first, so they end before a page without slots. One script checks a bounded number
-- of slots, and the next one continues.
local function count_slots(state, sid, session)
  local left = MAX_COUNTED
  while left > 0 and session.notices < 0 do
    local slot, stop = session.slots, session.slots + COUNTED_PAGE
    while slot < stop and not redis.call('HGET', state, field_of_slot(sid, slot)) do slot = slot + 1 end
    left = left - (slot - session.slots + 1)
    if slot == stop then session.notices = 0 else session.slots = stop end
  end
end

-- Adds the claim of a slot to a list, as CLAIM, mode and NAME. Returns false if the slot has no claim or a corrupt one,
-- which must not make the sweep fail. Consumed permits whose arrival is not confirmed are a claim too.
local function add_claim(slot_field, stored, claims)
  local name = slot_state(stored) ~= DONE and name_in_claim(stored)
  if not name then return false end
  local claim = Claim.read(stored)
  local number = claim.number
  if not (number == math.floor(number) and number >= 0 and number < MAX_TICK) then return false end
  claims[#claims + 1] = id_of_claim(slot_field, number)
  claims[#claims + 1] = claim.mode
  claims[#claims + 1] = name
  return true
end

-- Adds the claims of the slots from `first` to `stop` - 1 to a list, and deletes the slots that have none.
local function sweep_slots(state, sid, first, stop, claims)
  local fields = list_slot_fields(sid, first, stop)
  local records = redis.call('HMGET', state, unpack(fields))
  local done = {}
  for i = 1, #fields do
    if records[i] then
      local is_claim = add_claim(fields[i], records[i], claims)
      if not is_claim then done[#done + 1] = fields[i] end
    end
  end
  if #done > 0 then redis.call('HDEL', state, unpack(done)) end
end

-- Notes a session that was swept in the field `swept`: a time, then ' SID:TIME' for each of the last sessions, in
-- microseconds. The time at the beginning is that of the last session that is not listed any more. The process of the
-- session asks for it when it finds the session gone: nothing was lost then, so it does nothing again.
local function note_swept(state, sid, now)
  local swept = redis.call('HGET', state, 'swept') or '0'
  if #swept > MAX_SWEPT_LIST then
    local dropped, rest = string.match(swept, '^%d+ %w+:(%d+)(.*)$')
    swept = dropped and dropped .. rest or string.format('%d', now)
  end
  redis.call('HSET', state, 'swept', swept .. string.format(' %s:%d', sid, now))
end

-- Makes the expiry of a session final, and lists its claims for the scripts that end claims of other sessions, from the
-- last slot to the first. Deletes slots without claims, and the session when no slot is left.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID of the expired session
--   [2] below: the slots below this one, or empty for all
-- Reply: {'ok', below, {SID:SLOT:NUMBER, mode, NAME, …}}: run it again with this `below`, unless it is 0; {'alive'}:
--   the session has not expired.
function entry.sweep(keys, arguments)
  local partition = Partition.new({state = keys[1], sessions = keys[3]})
  local sid, wanted_below = arguments[1], arguments[2]
  local stored = redis.call('HGET', partition.state, SESSION_FIELD .. sid)
  if not stored then
    redis.call('ZREM', partition.sessions, sid)
    return {'ok', 0, {}}
  end
  local session = read_session_to_sweep(stored)
  local is_recounted = session.notices < 0
  if is_recounted then
    count_slots(partition.state, sid, session)
    allow_writes(partition.state)
    write_session(partition, sid, session)
    if session.notices < 0 then return {'ok', session.slots, {}} end
  end
  local now = read_time()
  if session.expires > now then return {'alive'} end
  local has_ended = session.expires == 0
  session.expires = 0
  local below = session.slots
  if wanted_below ~= '' and not is_recounted then below = math.min(tonumber(wanted_below), session.slots) end
  local is_top = below == session.slots
  local claims, left = {}, MAX_SWEPT_PAGES
  while below > 0 and #claims == 0 and left > 0 do
    left = left - 1
    local first = math.max(0, below - SWEPT_PAGE)
    sweep_slots(partition.state, sid, first, below, claims)
    below = first
    if is_top and #claims == 0 then session.slots = first end
  end
  if session.slots == 0 then
    delete_session(partition, sid)
    -- After a deletion, Redis allows the write also at maxmemory.
    note_swept(partition.state, sid, now)
  elseif is_top or not has_ended then
    allow_writes(partition.state)
    write_session(partition, sid, session)
  end
  return {'ok', below, claims}
end

-- Sets a claim of an expired session aside when the script that ends it has failed several times, because the record of
-- its resource is damaged. Otherwise the session would be swept again every second without end.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID of the expired session
--   [2] SLOT
--   [3] NUMBER of the claim
-- Reply: 1; 0: there is no such claim; {'alive'}: no sweep has ended the session.
-- Bounded: one claim.
function entry.set_aside(keys, arguments)
  local state = keys[1]
  local sid, slot_number, claim_number = arguments[1], arguments[2], arguments[3]
  local slot_field = SLOT_FIELD .. sid .. ':' .. slot_number
  local stored = redis.call('HMGET', state, SESSION_FIELD .. sid, slot_field)
  local stored_session, stored_slot = stored[1], stored[2]
  if is_session(stored_session) and struct.unpack(NUMBER_FORMAT, stored_session) > 0 then return {'alive'} end
  if not stored_slot or #stored_slot < Slot.size then return 0 end
  local slot = Slot.read(stored_slot)
  if slot.number ~= tonumber(claim_number) then return 0 end
  -- A deletion first, after which Redis allows the write also at maxmemory.
  redis.call('HDEL', state, slot_field)
  redis.call('HSET', state, ASIDE_FIELD .. sid .. ':' .. slot_number .. ':' .. claim_number, stored_slot)
  return 1
end

-- Adds the sessions of the state to the key of the sessions again, in pages, after the key was deleted: otherwise dead
-- sessions would never be swept.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] cursor: 0, then that of the last reply
-- Reply: the next cursor; 0 at the end
function entry.list_sessions(keys, arguments)
  local state, sessions = keys[1], keys[3]
  local page = redis.call('HSCAN', state, arguments[1], 'MATCH', SESSION_FIELD .. '*', 'COUNT', '500')
  local fields = page[2]
  for i = 1, #fields, 2 do
    local stored = fields[i + 1]
    local expires = is_session(stored) and struct.unpack(NUMBER_FORMAT, stored) or 0
    if not (expires > 0 and expires < MAX_TICK) then expires = 0 end
    redis.call('ZADD', sessions, 'NX', string.format('%d', expires), string.sub(fields[i], 3))
  end
  return tonumber(page[1])
end
