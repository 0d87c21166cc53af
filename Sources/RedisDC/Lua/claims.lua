-- Ends claims: those of the caller, those of expired sessions, and by force those of any session.
--
-- The record of a mutex names the claim that holds it. The release of a mutex without waiters deletes this record and
-- nothing else (release_mutex), so the slot of a claim on a mutex may be HELD after the end of the claim. All scripts
-- compare it with the record.

-- A claim that the script ends.
local Ending = record {
  also = {
    'slot_field',   -- the slot's field: c:SID:SLOT
    'claim_number', -- NUMBER of the claim
    'claim_id',     -- CLAIM
    'sid',          -- SID of its session, where others end the claim
    'stored',       -- the record of the slot, or false
    'is_named',     -- whether the record of a mutex names the claim
    'is_cohort',    -- whether the claim is HELD by a cohort, from its slot
    'ended_slot',   -- the record of the slot after the end of the claim; nil: the slot is deleted, for an expired
                    -- session
    'by_other',     -- true if others than the owner end the claim; else nil
    'word',         -- for the owner of a claim that is ended by force: lost; or empty, for the claim of an expired
                    -- session
    'session',      -- the record of the session as it is stored, where others end the claim
  },
}

-- Reads the arguments [1] and [4], which all scripts that end a claim have.
local function read_ending(arguments)
  local ending = Ending.new({slot_field = arguments[1], claim_number = tonumber(arguments[4]),
    claim_id = string.sub(arguments[1], 3) .. ':' .. arguments[4]})
  return ending
end

-- Ends a claim that the record of its mutex does not name.
local function end_unnamed_claim(partition, ending, resource, claim)
  claim.state = DONE
  -- The line of the holder remains if groups have used the mutex and it was destroyed.
  redis.call('ZREM', partition.index, holder_line(resource.name, ending.claim_id))
end

-- Returns whether an older claim on a mutex, whose slot is HELD, has ended. If Redis has lost its end, it has not.
local function has_older_claim_ended(partition, ending, slot_number)
  local older_id = id_of_claim(ending.slot_field, slot_number)
  local older = redis.call('HGET', partition.state, claimed_field(ending.stored))
  return not older or tail_of_resource(older) ~= older_id
    and not redis.call('ZSCORE', partition.index, holder_line(claimed_name(ending.stored), older_id))
end

-- Writes the number of the caller's request to the slot of a claim that has ended or was never created: if the request
-- for the claim arrives later, it is stale.
local function refuse_claim_from_now_on(partition, ending, number)
  if not ending.stored then
    local session_field = SESSION_FIELD .. string.match(ending.claim_id, '^[^:]+')
    local stored = redis.call('HGET', partition.state, session_field)
    if not stored or #stored ~= Session.size then refuse({'lost'}) end
    local session = Session.read(stored)
    local slots_used = string.match(ending.slot_field, '%d+$') + 1
    session.slots = math.max(session.slots, slots_used)
    -- A deletion first, after which Redis allows the writes also at maxmemory.
    allow_writes(partition.state)
    redis.call('HSET', partition.state, session_field, Session.write(session))
  end
  allow_writes(partition.state)
  redis.call('HSET', partition.state, ending.slot_field, done_slot(number))
end

-- Replies 0 to a caller whose claim does not exist.
local function answer_ended_claim(partition, ending, claim, is_sole, number)
  local is_free = claim.state == DONE or claim.state == GRANTED or claim.number == ending.claim_number
  if is_sole and not is_free then is_free = has_older_claim_ended(partition, ending, claim.number) end
  if number > claim.number and is_free then refuse_claim_from_now_on(partition, ending, number) end
  refuse(0)
end

-- Begins a script that ends a claim of the caller. If the claim does not exist, its request is refused from now on.
--
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] NUMBER of this request, greater than the claim's
--   [3] the field of the claim's resource: t:NAME
--   [4] NUMBER of the claim
--   [5]: see each entry
-- Fills in the claim and its resource. Reply: 0: there was no such claim; or {'lost'} as in slots.lua.
local function begin_own_end(partition, arguments, ending, claim, resource)
  local number = tonumber(arguments[2])
  resource.field, resource.name = arguments[3], string.sub(arguments[3], 3)
  local stored = redis.call('HMGET', partition.state, ending.slot_field, resource.field)
  ending.stored, resource.stored = stored[1], stored[2]
  read_resource(resource)
  claim.state, claim.number = DONE, 0
  if ending.stored then claim.state, claim.number = struct.unpack(Slot.format, ending.stored) end
  local slot_mode = claim.state == HELD and claim_mode(ending.stored)
  local is_sole = slot_mode == SOLE or slot_mode == COHORT
  ending.is_named, ending.is_cohort = is_sole and resource.family ~= GROUPS, slot_mode == COHORT
  if ending.is_named and claim.number == ending.claim_number and resource.tail ~= ending.claim_id then
    end_unnamed_claim(partition, ending, resource, claim)
  end
  if claim.number ~= ending.claim_number or claim.state == DONE then
    answer_ended_claim(partition, ending, claim, is_sole, number)
  end
  Claim.read_into(claim, ending.stored)
  ending.ended_slot = done_slot(number)
end

-- Begins a script that ends a claim of an expired session, or by force one of any session.
--
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] word for the owner of a claim that is ended by force: lost; or empty, for the claim of an expired session
--   [3] the field of the claim's resource: t:NAME
--   [4] NUMBER of the claim
-- Fills in the claim and its resource. Reply: 0: there was no such claim; {'alive'}: no sweep has ended its session.
local function begin_end_by_other(partition, arguments, ending, claim, resource)
  resource.field, resource.name, ending.word = arguments[3], string.sub(arguments[3], 3), arguments[2]
  ending.sid = string.match(ending.claim_id, '^[^:]+')
  local stored = redis.call('HMGET', partition.state, ending.slot_field, resource.field, SESSION_FIELD .. ending.sid)
  ending.stored, resource.stored, ending.session = stored[1], stored[2], stored[3]
  read_resource(resource)
  -- The clock does not count: if a sweep began while the clock was ahead, all claims of the session are ended.
  if ending.word == '' and ending.session and #ending.session == Session.size
    and struct.unpack(NUMBER_FORMAT, ending.session) > 0 then
    refuse({'alive'})
  end
  claim.state, claim.number = DONE, 0
  if ending.stored then claim.state, claim.number = struct.unpack(Slot.format, ending.stored) end
  local slot_mode = claim.state == HELD and claim_mode(ending.stored)
  ending.is_named = (slot_mode == SOLE or slot_mode == COHORT) and resource.family ~= GROUPS
  ending.is_cohort = slot_mode == COHORT
  if ending.is_named and resource.tail ~= ending.claim_id then
    end_unnamed_claim(partition, ending, resource, claim)
  end
  if claim.number ~= ending.claim_number or claim.state == DONE then
    -- The slot may have another claim: a request that arrived after the session had expired has reused it.
    if claim.number == ending.claim_number and ending.word == '' then
      redis.call('HDEL', partition.state, ending.slot_field)
    end
    refuse(0)
  end
  Claim.read_into(claim, ending.stored)
  ending.by_other = true
  if ending.word ~= '' then ending.ended_slot = done_slot(claim.number) .. ending.word end
end

-- Collects the slot of an ended claim, and a message for an owner that has lost it by force.
local function collect_ended_slot(writes, ending)
  if ending.ended_slot then
    set_field(writes, ending.slot_field, ending.ended_slot)
    if ending.by_other then
      writes.wakeups = {[ending.sid] = string.format('%d', ending.claim_number) .. ' ' .. ending.word}
      if ending.session and #ending.session == Session.size then
        local session = Session.read(ending.session)
        writes.sessions[ending.sid] = {expires = session.expires, notices = session.notices + 1,
          slots = session.slots, is_changed = true}
      end
    end
  else
    delete_field(writes, ending.slot_field)
  end
end

-- Returns the reply of a script that has ended a claim: {'more', 1} if waiters are left over for recheck, else 1.
local function reply_of_end(resource, is_left_over)
  return (is_left_over or resource.kind == BROKEN and resource.waiting > 0) and {'more', 1} or 1
end
