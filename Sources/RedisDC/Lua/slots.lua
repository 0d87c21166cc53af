-- Slots: the beginning of a request, which takes effect once, however often and late it arrives.
--
-- A session has numbered slots, as in NFS version 4.1 (RFC 8881, section 2.10.6). A slot serves one request at a time,
-- and afterwards the claim that the request has created. Its record keeps the number of its last request. Numbers grow
-- with each request of the session. So a request is new if its number is greater than the one in the record, repeated
-- if it is equal, and stale if it is less. A client reuses a slot when it has received the reply and the claim has
-- ended. That also confirms the arrival of consumed permits.

-- The first three arguments of a request that takes a slot.
local Request = record {
  also = {
    'slot_field',     -- [1] the slot's field: c:SID:SLOT
    'number',         -- [2] NUMBER of the request
    'number_text',    -- NUMBER as a text
    'resource_field', -- [3] the resource's field: t:NAME
  },
}

-- Reads the first three arguments of a request.
local function read_request(arguments)
  -- Adding 0 converts text to a number with fewer instructions than tonumber.
  local request = Request.new({slot_field = arguments[1], number = arguments[2] + 0, number_text = arguments[2],
    resource_field = arguments[3]})
  return request
end

-- Returns CLAIM, the name of the claim that a request creates.
local function id_of_request(request)
  return string.sub(request.slot_field, 3) .. ':' .. request.number_text
end

-- Checks that the session of a new slot is alive, and adds the slot to its record.
--
-- Only the first request in a slot checks this. Until an expired session is swept, it can still use its slots: claims
-- that it creates there are swept like the others, and its process has already ended by its own clock.
local function check_session_of_slot(partition, request, slot, clock)
  local sid, slot_of_session = string.match(request.slot_field, '^c:(.*):(%d+)$')
  slot.session_field = SESSION_FIELD .. sid
  local stored = redis.call('HGET', partition.state, slot.session_field)
  if not stored or #stored ~= Session.size then refuse({'lost'}) end
  local session = Session.read(stored)
  ensure_time(clock)
  if session.expires <= clock.now then
    -- From now on it has expired for every script.
    allow_writes(partition.state)
    session.expires = 0
    redis.call('HSET', partition.state, slot.session_field, Session.write(session))
    refuse({'lost', 'ended'})
  end
  local slots_used = slot_of_session + 1
  if slots_used > session.slots then
    session.slots = slots_used
    slot.session_record = Session.write(session)
  end
end

-- Reads the slot of a request.
--
-- Refusals:
--   {'lost'}: the session does not exist, for example because the data was lost; {'lost', 'ended'}: it has expired
--   {'stale'}: the slot has served a later request
local function read_slot(partition, request, clock)
  local slot = Slot.new({state = DONE, number = 0, stored = redis.call('HGET', partition.state, request.slot_field)})
  -- A shorter record is damaged, and the slot counts as new.
  if slot.stored and #slot.stored >= Slot.size then
    Slot.read_into(slot, slot.stored)
    if request.number < slot.number then refuse({'stale'}) end
  else
    check_session_of_slot(partition, request, slot, clock)
  end
  return slot
end

-- Answers a repeated request that creates a claim.
local function answer_repeated_claim(request, slot)
  if request.number == slot.number then
    if slot.state == DONE then refuse({'over', kept_reply(slot.stored)}) end
    if slot.state == WAITING then refuse(0) end
    local claim = Claim.read(slot.stored)
    -- 0: it is not known whether others wait behind a cohort.
    refuse({claim.tick, claim.mode == COHORT and 0 or claim.count})
  end
end

-- Answers a repeated request that creates no claim with the kept reply.
local function answer_repeated_call(request, slot)
  if request.number == slot.number then refuse(tonumber(kept_reply(slot.stored)) or 1) end
end

-- Refuses a slot that is HELD on another resource than that of the request, unless it is a mutex that has been
-- released.
local function check_released(partition, request, slot)
  if claim_mode(slot.stored) ~= SOLE then refuse({'occupied'}) end
  local held = redis.call('HGET', partition.state, claimed_field(slot.stored))
  local holder = id_of_claim(request.slot_field, slot.number)
  if held and (tail_of_resource(held) == holder
    or redis.call('ZSCORE', partition.index, holder_line(claimed_name(slot.stored), holder))) then
    refuse({'occupied'})
  end
end

-- Refuses a slot whose claim waits or holds: {'occupied'}.
--
-- The slot of a claim on a mutex may be HELD after the release (release_mutex). If the record of the mutex still names
-- the claim, Redis has lost the release. If the claim is on the resource of the request, read_or_create_resource
-- compares them.
local function check_free_slot(partition, request, slot)
  if slot.state == WAITING then refuse({'occupied'}) end
  if slot.state == HELD and claimed_field(slot.stored) ~= request.resource_field then
    check_released(partition, request, slot)
  end
end

-- Begins a request that creates a claim. Returns its slot.
local function begin_claim(partition, request, clock)
  local slot = read_slot(partition, request, clock)
  answer_repeated_claim(request, slot)
  check_free_slot(partition, request, slot)
  return slot
end

-- Begins a request that creates no claim. Returns its slot.
local function begin_call(partition, request, clock)
  local slot = read_slot(partition, request, clock)
  answer_repeated_call(request, slot)
  check_free_slot(partition, request, slot)
  return slot
end

-- Records in its slot that a request was refused, so that a copy of it that arrives late is repeated and has no effect.
--
-- A refused request writes nothing. If the connection was lost and the request was sent again, the first copy may still
-- arrive, and be granted what the second copy was refused. So a refusal is final only after this script.
local function keep_refusal(partition, request, slot)
  -- A deletion first, after which Redis allows the writes also at maxmemory.
  allow_writes(partition.state)
  redis.call('HSET', partition.state, request.slot_field, done_slot(request.number) .. '-1')
  write_session_of_slot(partition, slot)
end

-- Makes the refusal of a request for a claim final. If a copy of the request has taken effect since, replies as to a
-- repeated request.
--
-- KEYS: state, index
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] NUMBER of the refused request
--   [3] empty
-- Reply: -1; {'over', '-1'} if this request is repeated; the reply of a repeated request for a claim (entry acquire) if
--   a copy of the refused one has taken effect; or a refusal of slots.lua.
-- Bounded: one record.
function entry.settle_claim(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  keep_refusal(partition, request, slot)
  return -1
end

-- Makes the refusal of a request that creates no claim final. If a copy of the request has taken effect since, replies
-- as to a repeated request.
--
-- KEYS: state, index
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] NUMBER of the refused request
--   [3] empty
-- Reply: -1; the kept reply if a copy of the refused request has taken effect; or a refusal of slots.lua.
-- Bounded: one record.
function entry.settle_call(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  keep_refusal(partition, request, slot)
  return -1
end
