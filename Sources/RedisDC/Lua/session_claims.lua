-- The claims of a session: how its process lists them, to compare them with its own, and confirms consumed permits.

-- The number of slots in a page of claims.
local CLAIMS_PAGE = 200

-- A slot in the list of claims, as the entry `claims` replies it.
local Listed = record {
  also = {
    'state',  -- that of the slot
    'number', -- of the request that created the claim
    'tick',
    'count',
    'mode',
    'name',   -- NAME of the resource or, in state DONE, what the slot keeps
  },
}

-- Returns whether a claim holds its mutex: the record of the mutex names it, or in the family GROUPS a line of the
-- index.
local function is_held(partition, name, id)
  local resource = redis.call('HGET', partition.state, RESOURCE_FIELD .. name)
  if not resource then return false end
  return tail_of_resource(resource) == id or redis.call('ZSCORE', partition.index, holder_line(name, id))
end

-- Returns whether a claim is in the state that its slot shows: a WAITING one has a line in the queue, and a HELD one on
-- a mutex holds the mutex.
local function is_claim_current(partition, claim, name, id)
  if claim.state == WAITING then
    return redis.call('ZSCORE', partition.index, queue_line(name, claim.priority, claim.tick, id))
  end
  if claim.state ~= HELD or claim.mode ~= SOLE and claim.mode ~= COHORT then return true end
  local is_holder = is_held(partition, name, id)
  return is_holder
end

-- Reads a slot of the list. It stays DONE with an empty name if its claim has ended or is damaged.
local function read_listed(partition, slot_field, stored, listed)
  -- A shorter record is damaged.
  if not stored or #stored < (slot_state(stored) == DONE and Slot.size or Claim.size) then return end
  if slot_state(stored) == DONE then
    local slot = Slot.read(stored)
    listed.number = slot.number
    listed.name = kept_reply(stored)
    return
  end
  local claim = Claim.read(stored)
  local name = name_in_claim(stored) or ''
  local is_claim = is_claim_current(partition, claim, name, id_of_claim(slot_field, claim.number))
  listed.number, listed.tick, listed.mode = claim.number, claim.tick, claim.mode
  if claim.state ~= HELD or claim.mode ~= COHORT then listed.count = claim.count end
  if is_claim then listed.state, listed.name = claim.state, name end
end

-- Lists the claims of the session, and those that others have ended, in pages.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID
--   [2] from: the first slot of the page
--   [3] 1 to list all slots. Without it, those without a claim are left out, unless another has ended the claim.
-- Reply: {'ok', from of the next page or 0 after the last, {SLOT, NUMBER, state, tick, count, mode, NAME, …}},
--   {'lost'}, or {'lost', 'ended'} when it has expired. The state is that of the slot. In state d, NAME is what the
--   slot keeps: a word for the end of its claim, or a reply.
-- Bounded: a page of 200 slots: BoundHazards.swift.
function entry.claims(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local sid, first = arguments[1], tonumber(arguments[2])
  local stored_session = redis.call('HGET', partition.state, SESSION_FIELD .. sid)
  if not is_session(stored_session) then return {'lost'} end
  local session = Session.read(stored_session)
  if session.expires == 0 then return {'lost', 'ended'} end
  local stop = math.min(session.slots, first + CLAIMS_PAGE)
  local fields = list_slot_fields(sid, first, stop)
  local records = #fields > 0 and redis.call('HMGET', partition.state, unpack(fields)) or {}
  local page = {}
  for i = 1, #fields do
    local listed = Listed.new({state = DONE, number = 0, tick = 0, count = 0, mode = '', name = ''})
    read_listed(partition, fields[i], records[i], listed)
    -- The word for the end of a claim begins with a letter; other kept replies do not.
    if listed.state ~= DONE or arguments[3] or string.find(listed.name, '^%l') then
      page[#page + 1] = first + i - 1
      page[#page + 1] = listed.number
      page[#page + 1] = listed.state
      page[#page + 1] = listed.tick
      page[#page + 1] = listed.count
      page[#page + 1] = listed.mode
      page[#page + 1] = listed.name
    end
  end
  return {'ok', stop < session.slots and stop or 0, page}
end

-- Confirms the arrival of consumed permits whose slots have not been reused: then the end of the session does not
-- return them. KEYS: state, index, sessions, values ARGV
--   [1] SID
--   [2] SLOT:NUMBER, …, separated by spaces, at most 4,000 bytes
-- Reply: 1
-- Refuses more bytes with an error.
function entry.confirm(keys, arguments)
  local state, sid, confirmations = keys[1], arguments[1], arguments[2]
  if #confirmations > 4000 then
    return redis.error_reply('RDC more than 4000 bytes of confirmations in one request')
  end
  allow_writes(state)
  for slot_text, number in string.gmatch(confirmations, '(%d+):(%d+)') do
    local slot_field = SLOT_FIELD .. sid .. ':' .. slot_text
    local stored = redis.call('HGET', state, slot_field)
    if stored then
      local slot = Slot.read(stored)
      if slot.state == GRANTED and slot.number == tonumber(number) then
        redis.call('HSET', state, slot_field, done_slot(slot.number))
      end
    end
  end
  return 1
end
