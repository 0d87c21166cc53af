-- Opens a generation as soon as enough waiters are alive, and grants to its parties, in steps that any process
-- continues.
--
-- When a generation opens, `free` becomes the number of its parties. The tail of the resource becomes the tick of the
-- last party in the queue and the number of parties, because a phaser's limit may change before all are granted. Later
-- parties belong to the next generation. A party that dies before it is granted counts as granted.

-- The work of a script on a generation.
local Round = record {
  also = {
    'tick_at',      -- the position of the tick in a line of the queue
    'claim_at',     -- the position of the claim in it
    'budget',       -- the number of parties that this script may still grant
    'is_left_over', -- whether there is work left over for the next script
    'meeting',      -- of an exchanger: the tick of the meeting, as it is in its field; nil as long as it has no party
    'parties',      -- of an exchanger: the claims of the parties
  },
}

-- Finds up to `limit` waiters whose sessions are alive. leaving: the line of a party that the script ends. Returns
-- their number, the line of the last one, and the lines of up to 256 waiters whose sessions have expired.
local function find_living(partition, writes, clock, lines, claim_at, limit, leaving)
  local living, last, dead = 0, nil, {}
  for i = 1, #lines do
    if lines[i] ~= leaving then
      local claim_id = string.sub(lines[i], claim_at)
      local sid = string.sub(claim_id, 1, string.find(claim_id, ':', 1, true) - 1)
      local session = read_session(partition, writes, sid)
      note_expiry(session, clock.now)
      if session.expires > 0 then
        living, last = living + 1, lines[i]
        if living == limit then break end
      else
        dead[#dead + 1] = lines[i]
        if #dead == 256 then break end
      end
    end
  end
  return living, last, dead
end

-- Removes waiters whose sessions have expired. Their slots are deleted with their lines, so that the sweep of their
-- sessions does not end the claims again.
local function remove_dead(resource, writes, dead, claim_at)
  for i = 1, #dead do
    local claim_id = string.sub(dead[i], claim_at)
    remove_line(writes, dead[i])
    delete_field(writes, SLOT_FIELD .. string.match(claim_id, '^(.*):%d+$'))
    if resource.kind == EXCHANGER then delete_value(writes, BROUGHT_FIELD .. claim_id) end
  end
  resource.waiting = resource.waiting - #dead
end

-- Opens a generation if enough waiters are alive.
local function open_generation(partition, resource, clock, writes, round)
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(QUEUE_LINE, resource.name),
    after_last_line(QUEUE_LINE, resource.name), 'LIMIT', '0', '1536')
  local living, last, dead = find_living(partition, writes, clock, lines, round.claim_at, resource.limit,
    writes.zrem[1])
  if #dead > 0 and resource.kind == BARRIER_BROKEN_BY_LEAVING then
    resource.kind, round.is_left_over = BROKEN, true
  else
    remove_dead(resource, writes, dead, round.claim_at)
    if living == resource.limit then
      resource.free, resource.signalled = resource.limit, resource.signalled + 1
      resource.tail = string.sub(last, round.tick_at, round.tick_at + 7)
        .. struct.pack(NUMBER_FORMAT, resource.limit)
      -- More than 256 parties were checked: the next script begins to grant, so that this one stays short.
      if #lines > 256 then round.budget = 0 end
    elseif #lines == 1536 or #dead == 256 then
      round.is_left_over = true
    end
  end
end

-- Makes a party of an exchanger a holder, that reads the values of its meeting.
local function join_meeting(partition, resource, clock, writes, round, party, claim)
  if not round.meeting then
    take_next_tick(partition, clock)
    round.meeting, round.parties = struct.pack(TICK_FORMAT, clock.tick), {}
  end
  clock.tick = clock.tick + 1
  round.parties[#round.parties + 1] = party.id
  claim.state, claim.tick = HELD, clock.tick
  add_line(writes, holder_line(resource.name, party.id))
end

-- Grants a party its place in the generation. arrival: generation * 1024 + index. Returns its fence, as it is in the
-- message.
local function grant_to_party(partition, resource, clock, writes, round, party, claim, arrival)
  local fence, note = '1', ''
  if claim.mode == MEETING then
    join_meeting(partition, resource, clock, writes, round, party, claim)
    fence, note = string.format('%d', clock.tick), '\0' .. round.meeting
  else
    claim.state, claim.tick = GRANTED, resource.created
  end
  claim.count = arrival
  set_field(writes, party.slot_field, Claim.write(claim) .. resource.field .. note)
  return fence
end

-- Removes a party of the open generation from the queue, and grants to it if it still waits and its session is alive.
local function handle_party(partition, resource, clock, writes, round, line)
  local party = read_waiter(line, round.claim_at)
  local session = read_session(partition, writes, party.sid)
  local stored = redis.call('HGET', partition.state, party.slot_field)
  local claim = Claim.new({number = 0})
  if stored and slot_state(stored) == WAITING then Claim.read_into(claim, stored) end
  remove_line(writes, line)
  resource.waiting, round.budget = resource.waiting - 1, round.budget - 1
  -- The generation and the index in it, from 0. There are at most 1,024 parties.
  local arrival = (resource.signalled - 1) * 1024 + struct.unpack(NUMBER_FORMAT, resource.tail, 9) - resource.free
  resource.free = resource.free - 1
  if claim.number ~= tonumber(party.number) or session.expires <= clock.now then
    note_expiry(session, clock.now)
    if claim.state == WAITING and claim.number == tonumber(party.number) then
      delete_field(writes, party.slot_field)
      if claim.mode == MEETING then delete_value(writes, BROUGHT_FIELD .. party.id) end
    end
  else
    local fence = grant_to_party(partition, resource, clock, writes, round, party, claim, arrival)
    if party.slot_field == writes.asker then
      writes.answer = {claim.tick, arrival}
    else
      add_notice(session)
      add_wakeup(writes, party.sid, party.number, fence .. '/' .. string.format('%d', arrival))
    end
  end
end

-- Grants to the parties of the open generation.
local function grant_generation(partition, resource, clock, writes, round)
  local removed = {}
  for i = 1, #writes.zrem do removed[writes.zrem[i]] = true end
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(QUEUE_LINE, resource.name),
    after_last_line(QUEUE_LINE, resource.name), 'LIMIT', '0', #writes.zrem + round.budget)
  writes.wakeups = writes.wakeups or {}
  for i = 1, #lines do
    if resource.free == 0 or round.budget == 0
      or string.sub(lines[i], round.tick_at, round.tick_at + 7) > resource.tail then
      break
    end
    if not removed[lines[i]] then handle_party(partition, resource, clock, writes, round, lines[i]) end
  end
  -- The index lacks waiters that the record counts: someone has changed it.
  if round.budget > 0 and resource.free > 0 then resource.free = 0 end
  if round.meeting then
    set_field(writes, MEETING_FIELD .. resource.name .. '\0' .. round.meeting,
      struct.pack(NUMBER_FORMAT, #round.parties) .. table.concat(round.parties, ' '))
  end
  round.is_left_over = resource.free > 0 or resource.limit > 0 and resource.waiting >= resource.limit
end

-- Opens a generation if it can, and grants to the parties of the open one. Returns whether there is work left over for
-- the next script.
local function grant_meeting(partition, resource, clock, writes)
  local round = Round.new({budget = 128, is_left_over = false})
  if resource.kind and resource.kind ~= DESTROYED and resource.kind ~= BROKEN then
    round.tick_at, round.claim_at = queue_tick_at(resource.name), queue_claim_at(resource.name)
    ensure_time(clock)
    if resource.free == 0 and resource.limit > 0 and resource.waiting >= resource.limit then
      open_generation(partition, resource, clock, writes, round)
    end
    if resource.free > 0 and resource.kind ~= BROKEN then
      grant_generation(partition, resource, clock, writes, round)
    end
  end
  if round.is_left_over then add_recheck(writes, resource.name) end
  return round.is_left_over
end
