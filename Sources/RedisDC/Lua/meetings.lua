-- The family of barriers, phasers and exchangers. Parties arrive and wait, until a meeting is granted to all of them at
-- once (meeting_grant.lua). A phaser has registered parties, who hold a lease. The parties of an exchanger bring values,
-- and hold a lease until they have read those of all.

-- Writes the arrival of a party. It is written at once, because the script may grant this claim.
local function write_arrival(partition, request, resource, clock, mode, value)
  local id = id_of_request(request)
  if value then redis.call('HSET', partition.values, BROUGHT_FIELD .. id, value) end
  redis.call('ZADD', partition.index, '0', queue_line(resource.name, ORDINARY, clock.tick, id))
  local claim = Claim.new({state = WAITING, number = request.number, count = 1, tick = clock.tick, mode = mode,
    priority = ORDINARY})
  redis.call('HSET', partition.state, request.slot_field, Claim.write(claim) .. resource.field)
  resource.waiting = resource.waiting + 1
end

-- Arrives at a barrier, phaser or exchanger, and waits for the others.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
--   [6] mode: a arrival; e arrival at an exchanger
--   [7] the value that the party brings to an exchanger
-- Reply: 0: queued, also for the last party, which is woken like the others; {'more', 0} if waiters are left over for
--   the next script; {fence, generation * 1024 + index} if the request is repeated after the grant; {'over', word} if
--   its claim was ended by another (see DONE); or a refusal of slots.lua or of read_or_create_resource.
function entry.arrive(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], MEETINGS, false)
  take_tick(partition, clock)
  if resource.stored then
    resource.tail = tail_of_resource(resource.stored)
  else
    resource.created, resource.free = clock.tick, 0
  end
  resource.name = string.sub(resource.field, 3)
  write_arrival(partition, request, resource, clock, arguments[6], arguments[7])
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {}, zrem = {}, sessions = {},
    session_field = slot.session_field, session_record = slot.session_record})
  local is_left_over = grant_meeting(partition, resource, clock, writes)
  delete_values(partition, writes)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return is_left_over and {'more', 0} or 0
end

-- Registers a party of a phaser, without waiting.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
--   [6] mode: r party of a phaser
-- Reply: the fence; {fence, count} if the request is repeated; {'over', word} if its claim was ended by another (see
--   DONE); or a refusal of slots.lua or of read_or_create_resource. Refuses with an error if the phaser has as many
--   parties as it can.
function entry.register(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], MEETINGS, false)
  local fence = register_party(partition, request, slot, resource, clock, arguments[6])
  return fence
end

-- Removes a party that waits from the queue. A barrier breaks when a party leaves, if that is its policy.
-- if_waiting: 'w' if the claim must not end when it is about to be granted.
-- Reply {'again'}: a generation is open, and grants are about to follow: the same request must be sent again.
local function remove_waiting_party(ending, claim, resource, writes, if_waiting)
  local has_passed = false
  if resource.stored and resource.free > 0 and struct.pack(TICK_FORMAT, claim.tick) <= resource.tail
    and resource.kind ~= DESTROYED and resource.kind ~= BROKEN then
    if if_waiting == 'w' then refuse({'again'}) end
    -- It has passed with its generation.
    resource.free, has_passed = resource.free - 1, true
  elseif resource.stored and resource.free > 0 and resource.kind == BARRIER_BROKEN_BY_LEAVING then
    -- The barrier breaks as soon as the parties of the open generation have been granted.
    refuse({'again'})
  end
  if claim.mode == MEETING then writes.vdel[1] = BROUGHT_FIELD .. ending.claim_id end
  writes.zrem[1] = queue_line(resource.name, claim.priority, claim.tick, ending.claim_id)
  if resource.stored then
    resource.waiting = resource.waiting - 1
    if resource.kind == BARRIER_BROKEN_BY_LEAVING and not has_passed then
      resource.kind = BROKEN
      add_recheck(writes, resource.name)
    end
  end
end

-- Counts a party of a meeting that leaves. The last one deletes the values of the meeting.
local function leave_meeting(partition, ending, claim, resource, writes)
  local meeting_field = MEETING_FIELD .. resource.name .. string.sub(ending.stored, claim.name_at + #resource.field)
  local meeting = redis.call('HGET', partition.state, meeting_field) or NEVER
  local unread, parties_at = struct.unpack(NUMBER_FORMAT, meeting)
  if unread > 1 then
    set_field(writes, meeting_field, struct.pack(NUMBER_FORMAT, unread - 1) .. string.sub(meeting, parties_at))
  else
    delete_field(writes, meeting_field)
    for party in string.gmatch(string.sub(meeting, parties_at), '%S+') do
      delete_value(writes, BROUGHT_FIELD .. party)
    end
  end
end

-- Collects the end of a party's claim. Returns whether others may be granted now.
local function collect_end_of_party(partition, ending, claim, resource, writes, if_waiting)
  if claim.state == WAITING then
    remove_waiting_party(ending, claim, resource, writes, if_waiting)
    return resource.stored
  end
  if if_waiting == 'w' then refuse({claim.tick, claim.count}) end
  if claim.state ~= HELD then return false end
  writes.zrem[1] = holder_line(resource.name, ending.claim_id)
  if claim.mode ~= PARTY then
    leave_meeting(partition, ending, claim, resource, writes)
    return false
  end
  if not resource.stored or resource.kind ~= PHASER or claim.tick < resource.created then return false end
  resource.limit = resource.limit - 1
  return true
end

-- Ends the claim of a party, and writes everything: removes it from the queue, deregisters it, or deletes what it
-- brought. if_waiting: see remove_waiting_party. Returns the reply.
local function end_claim_of_party(partition, ending, claim, resource, if_waiting)
  local clock = Clock.new()
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {}, zrem = {}, sessions = {}})
  local wants_grants = collect_end_of_party(partition, ending, claim, resource, writes, if_waiting)
  collect_ended_slot(writes, ending)
  local is_left_over = false
  if wants_grants then is_left_over = grant_meeting(partition, resource, clock, writes) end
  local reply = reply_of_end(resource, is_left_over)
  delete_values(partition, writes)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return reply
end

-- Ends a claim of the caller: leaves the queue, deregisters from a phaser, or leaves a meeting at an exchanger.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] to [4]: see begin_own_end
--   [5] w: only if the claim still waits; the reply is {fence, generation * 1024 + index} if it was granted. Or nothing.
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'again'}: see
--   remove_waiting_party; or {'lost'} as in slots.lua.
function entry.release_party(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_own_end(partition, arguments, ending, claim, resource)
  local reply = end_claim_of_party(partition, ending, claim, resource, arguments[5])
  return reply
end

-- Ends a claim of a party of an expired session, or by force one of any session.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] to [4]: see begin_end_by_other
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'again'}: see
--   remove_waiting_party; {'alive'}: no sweep has ended its session.
function entry.end_party(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_end_by_other(partition, arguments, ending, claim, resource)
  local reply = end_claim_of_party(partition, ending, claim, resource, arguments[5])
  return reply
end

-- Continues where an earlier script stopped at its bound. Anyone may run it, without a session.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] NAME
-- Reply: 1; {'more', 1} if there is still work left over for the next script; {'family', FAMILY}: the script of this
--   family must run instead, x for one that clears a destroyed or broken resource.
function entry.recheck_meeting(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local clock = Clock.new()
  local resource = read_resource_again(partition, arguments[1], MEETINGS)
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {}, zrem = {RECHECK_LINE .. resource.name},
    sessions = {}})
  local is_left_over = grant_meeting(partition, resource, clock, writes)
  delete_values(partition, writes)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return is_left_over and {'more', 1} or 1
end
