-- Grants meetings: the waiters of a barrier, phaser or exchanger are granted together, as soon as enough of them are
-- alive.
--
-- Enough parties open a generation. Then `free` is the number of its parties, and the tail of the resource the tick in
-- the queue of the last of them and their number: a phaser's limit may change before all are granted. A party that
-- arrives later belongs to the next generation. One that dies before it is granted has passed, like the others. A script
-- grants to a bounded number of parties, and any later one continues.

-- The number of parties that one script removes from the queue.
local MAX_GRANTED = 128
-- The number of lines that one script reads to find enough living parties, as a number and as text, and that of dead
-- parties that it removes.
local MAX_CHECKED, MAX_CHECKED_TEXT, MAX_DEAD = 1536, '1536', 256
-- When more parties than this were checked, the next script begins to grant, so that this one stays short.
local MAX_CHECKED_AND_GRANTED = 256
-- Where the number of the parties of the open generation is in the tail of a resource.
local PARTY_COUNT_AT = 9

-- The parties in the queue, as far as a script has checked whether they are alive.
local Parties = record {
  also = {
    'living',      -- the number of living ones
    'last',        -- the line of the last living one
    'dead',        -- lines of those whose sessions have expired
    'is_complete', -- whether no more must be checked: enough are alive, or as many are dead as one script removes
  },
}

-- The generation that a script opens or grants to.
local Generation = record {
  also = {
    'budget',       -- the number of parties that this script may still remove from the queue
    'is_left_over', -- whether the next script must continue
    'meeting',      -- at an exchanger: the tick of the meeting, as in its field, when the first party has been granted
    'parties',      -- the CLAIMs of the parties of this meeting
  },
}

-- Checks whether the party of a line is alive.
local function check_party(partition, resource, clock, writes, parties, line)
  local id = string.sub(line, queue_claim_at(resource.name))
  local sid = string.sub(id, 1, string.find(id, ':', 1, true) - 1)
  local session = read_session(partition, writes, sid)
  note_expiry(session, clock.now)
  if session.expires > 0 then
    parties.living, parties.last = parties.living + 1, line
    parties.is_complete = parties.living == resource.limit
  else
    parties.dead[#parties.dead + 1] = line
    parties.is_complete = #parties.dead == MAX_DEAD
  end
end

-- Removes parties of expired sessions from the queue. Their slots are removed with their lines: the sweep of their
-- sessions must not count them again.
local function remove_dead_parties(resource, writes, dead)
  for i = 1, #dead do
    local id = string.sub(dead[i], queue_claim_at(resource.name))
    remove_line(writes, dead[i])
    delete_field(writes, SLOT_FIELD .. string.match(id, '^(.*):%d+$'))
    if resource.kind == EXCHANGER then delete_value(writes, BROUGHT_FIELD .. id) end
  end
  resource.waiting = resource.waiting - #dead
end

-- Opens a generation if enough parties are alive, removes the dead ones, or breaks a barrier that they break.
local function open_generation(partition, resource, clock, writes, generation)
  local name, leaving = resource.name, writes.zrem[1]
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(QUEUE_LINE, name),
    after_last_line(QUEUE_LINE, name), 'LIMIT', '0', MAX_CHECKED_TEXT)
  local parties = Parties.new({living = 0, dead = {}, is_complete = false})
  for i = 1, #lines do
    if lines[i] ~= leaving then
      check_party(partition, resource, clock, writes, parties, lines[i])
      if parties.is_complete then break end
    end
  end
  if #parties.dead > 0 and resource.kind == BARRIER_BROKEN_BY_LEAVING then
    resource.kind, generation.is_left_over = BROKEN, true
    return
  end
  remove_dead_parties(resource, writes, parties.dead)
  if parties.living == resource.limit then
    resource.free, resource.signalled = resource.limit, resource.signalled + 1
    local tick_at = queue_tick_at(name)
    resource.tail = string.sub(parties.last, tick_at, tick_at + 7) .. struct.pack(NUMBER_FORMAT, resource.limit)
    if #lines > MAX_CHECKED_AND_GRANTED then generation.budget = 0 end
  elseif #lines == MAX_CHECKED or #parties.dead == MAX_DEAD then
    generation.is_left_over = true
  end
end

-- Reads the party of a line.
local function read_party(line, claim_at)
  local party = Waiter.new({line = line, id = string.sub(line, claim_at)})
  local slot
  party.sid, slot, party.number = string.match(party.id, '^(%w+):(%d+):(%d+)$')
  party.slot_field = SLOT_FIELD .. party.sid .. ':' .. slot
  return party
end

-- Passes over a party whose claim has ended or whose session has expired.
local function pass_over_party(writes, now, party, claim, session)
  note_expiry(session, now)
  if claim.state == WAITING and claim.number == tonumber(party.number) then
    delete_field(writes, party.slot_field)
    if claim.mode == MEETING then delete_value(writes, BROUGHT_FIELD .. party.id) end
  end
end

-- Makes a party of an exchanger the holder of a lease, until it has read the values of its meeting. Returns its fence,
-- as it is in the message, and the note of the claim.
local function join_meeting(partition, resource, clock, writes, generation, party, claim)
  if not generation.meeting then
    take_next_tick(partition, clock)
    generation.meeting, generation.parties = struct.pack(TICK_FORMAT, clock.tick), {}
  end
  clock.tick = clock.tick + 1
  generation.parties[#generation.parties + 1] = party.id
  claim.state, claim.tick = HELD, clock.tick
  add_line(writes, holder_line(resource.name, party.id))
  return string.format('%d', clock.tick), '\0' .. generation.meeting
end

-- Grants a party its meeting. arrival: generation * 1024 + index.
local function grant_to_party(partition, resource, clock, writes, generation, party, claim, session, arrival)
  local fence, note = '1', ''
  claim.state, claim.tick, claim.count = GRANTED, resource.created, arrival
  if claim.mode == MEETING then
    fence, note = join_meeting(partition, resource, clock, writes, generation, party, claim)
  end
  set_field(writes, party.slot_field, Claim.write(claim) .. resource.field .. note)
  add_notice(session)
  add_wakeup(writes, party.sid, party.number, fence .. '/' .. string.format('%d', arrival))
end

-- Removes the party of a line from the queue, and grants it its meeting if it still waits.
local function handle_party(partition, resource, clock, writes, generation, line, claim_at)
  local party = read_party(line, claim_at)
  local session = read_session(partition, writes, party.sid)
  local stored = redis.call('HGET', partition.state, party.slot_field)
  local claim = Claim.new({state = DONE, number = 0})
  if stored and slot_state(stored) == WAITING then Claim.read_into(claim, stored) end
  remove_line(writes, line)
  resource.waiting, generation.budget = resource.waiting - 1, generation.budget - 1
  -- The generation and the index in it, from 0.
  local arrival = (resource.signalled - 1) * MAX_PARTIES
    + struct.unpack(NUMBER_FORMAT, resource.tail, PARTY_COUNT_AT) - resource.free
  resource.free = resource.free - 1
  if claim.number ~= tonumber(party.number) or session.expires <= clock.now then
    pass_over_party(writes, clock.now, party, claim, session)
  else
    grant_to_party(partition, resource, clock, writes, generation, party, claim, session, arrival)
  end
end

-- Grants to the parties of the open generation, in the order of the queue.
local function grant_to_generation(partition, resource, clock, writes, generation)
  local name, removed = resource.name, {}
  for i = 1, #writes.zrem do removed[writes.zrem[i]] = true end
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(QUEUE_LINE, name),
    after_last_line(QUEUE_LINE, name), 'LIMIT', '0', #writes.zrem + generation.budget)
  writes.wakeups = writes.wakeups or {}
  local tick_at, claim_at = queue_tick_at(name), queue_claim_at(name)
  for i = 1, #lines do
    local is_of_generation = string.sub(lines[i], tick_at, tick_at + 7) <= resource.tail
    if resource.free == 0 or generation.budget == 0 or not is_of_generation then break end
    if not removed[lines[i]] then
      handle_party(partition, resource, clock, writes, generation, lines[i], claim_at)
    end
  end
  -- The index lacks waiters that the record counts: someone has changed it.
  if generation.budget > 0 and resource.free > 0 then resource.free = 0 end
  if generation.meeting then
    set_field(writes, MEETING_FIELD .. name .. '\0' .. generation.meeting,
      struct.pack(NUMBER_FORMAT, #generation.parties) .. table.concat(generation.parties, ' '))
  end
  generation.is_left_over = resource.free > 0 or resource.limit > 0 and resource.waiting >= resource.limit
end

-- Opens a generation as soon as enough waiters are alive, and grants to its parties, in steps. Returns whether parties
-- are left over for the next script.
local function grant_meeting(partition, resource, clock, writes)
  local generation = Generation.new({budget = MAX_GRANTED, is_left_over = false})
  if resource.kind and resource.kind ~= DESTROYED and resource.kind ~= BROKEN then
    ensure_time(clock)
    if resource.free == 0 and resource.limit > 0 and resource.waiting >= resource.limit then
      open_generation(partition, resource, clock, writes, generation)
    end
    if resource.free > 0 and resource.kind ~= BROKEN then
      grant_to_generation(partition, resource, clock, writes, generation)
    end
  end
  if generation.is_left_over then add_recheck(writes, resource.name) end
  return generation.is_left_over
end
