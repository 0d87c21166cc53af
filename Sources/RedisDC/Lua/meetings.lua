-- The family MEETINGS: barriers, phasers and exchangers. Waiters are granted together, as soon as enough of them are
-- alive. A party is a claim on such a resource, and waits until its generation opens (meeting_grant.lua). A party of a
-- phaser registers first. A party of an exchanger brings a value, and holds its claim until it has read the values of
-- all.

-- Puts a party into the queue, and writes its claim, because the same script may grant it. brought: the value that it
-- brings to an exchanger, or nil.
local function queue_party(partition, request, resource, clock, mode, brought)
  local claim_id = id_of_request(request)
  if brought then redis.call('HSET', partition.values, BROUGHT_FIELD .. claim_id, brought) end
  redis.call('ZADD', partition.index, '0', queue_line(resource.name, ORDINARY, clock.tick, claim_id))
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
-- Reply: 0: queued, the grant will be a message; {fence, generation * 1024 + index}: granted, because this was the last
--   party, or because the request is repeated after the grant; {'more', 0}: queued, and waiters are left over for the
--   next script; {'over', word} if its claim was ended by another (see DONE); or a refusal of slots.lua or of
--   read_or_create_resource.
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
  queue_party(partition, request, resource, clock, arguments[6], arguments[7])
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {}, zrem = {}, sessions = {},
    asker = request.slot_field})
  local is_left_over = grant_meeting(partition, resource, clock, writes)
  delete_values(partition, writes)
  collect_resource(writes, resource)
  write_all_of_request(partition, slot, writes, clock)
  -- The last party has no waiters behind it.
  return writes.answer or is_left_over and {'more', 0} or 0
end

-- Registers a party of a phaser without waiting.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
--   [6] mode: r party of a phaser
-- Reply: the fence; {fence, count} if the request is repeated; {'over', word} if its claim was ended by another (see
--   DONE); or a refusal of slots.lua or of read_or_create_resource.
-- Bounded: one claim.
function entry.register(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], MEETINGS, false)
  local fence = register_party(partition, request, slot, resource, clock, arguments[6])
  return fence
end

-- Removes a waiting party from the queue. Replies {'again'} if the open generation must be granted first.
local function leave_queue(ending, claim, resource, writes, only_waiting)
  local queue_tick, has_passed = struct.pack(TICK_FORMAT, claim.tick), false
  if resource.stored and resource.free > 0 and queue_tick <= resource.tail and resource.kind ~= DESTROYED
    and resource.kind ~= BROKEN then
    if only_waiting then refuse({'again'}) end
    -- It counts as granted with its generation.
    resource.free, has_passed = resource.free - 1, true
  elseif resource.stored and resource.free > 0 and resource.kind == BARRIER_BROKEN_BY_LEAVING then
    -- The barrier breaks as soon as the parties of the open generation have been granted.
    refuse({'again'})
  end
  if claim.mode == MEETING then delete_value(writes, BROUGHT_FIELD .. ending.claim_id) end
  remove_line(writes, QUEUE_LINE .. resource.name .. '\0' .. claim.priority .. queue_tick .. ending.claim_id)
  if resource.stored then
    resource.waiting = resource.waiting - 1
    if resource.kind == BARRIER_BROKEN_BY_LEAVING and not has_passed then
      resource.kind = BROKEN
      add_recheck(writes, resource.name)
    end
  end
end

-- Removes a party of an exchanger from its meeting. The last party deletes the values.
local function leave_meeting(partition, resource, writes, note)
  local meeting_field = MEETING_FIELD .. resource.name .. note
  local meeting = redis.call('HGET', partition.state, meeting_field) or NEVER
  local unread, parties_at = struct.unpack(NUMBER_FORMAT, meeting)
  local parties = string.sub(meeting, parties_at)
  if unread > 1 then
    set_field(writes, meeting_field, struct.pack(NUMBER_FORMAT, unread - 1) .. parties)
  else
    delete_field(writes, meeting_field)
    for party in string.gmatch(parties, '%S+') do delete_value(writes, BROUGHT_FIELD .. party) end
  end
end

-- Ends the lease of a party of a phaser or exchanger. Returns whether the phaser needs fewer parties now.
local function leave_as_holder(partition, ending, claim, resource, writes)
  local has_freed = false
  remove_line(writes, holder_line(resource.name, ending.claim_id))
  if claim.mode == PARTY then
    if resource.stored and resource.kind == PHASER and claim.tick >= resource.created then
      resource.limit, has_freed = resource.limit - 1, true
    end
  else
    leave_meeting(partition, resource, writes, string.sub(ending.stored, claim.name_at + #resource.field))
  end
  return has_freed
end

-- Ends the claim of a party, and writes everything: removes it from the queue, deregisters it, or deletes what it
-- brought. only_waiting: only if the claim still waits. Returns the reply.
local function end_claim_of_party(partition, ending, claim, resource, only_waiting)
  local clock = Clock.new()
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {}, zrem = {}, sessions = {}})
  local has_freed = false
  if claim.state == WAITING then
    leave_queue(ending, claim, resource, writes, only_waiting)
    has_freed = resource.stored
  elseif only_waiting then
    refuse({claim.tick, claim.count})
  elseif claim.state == HELD then
    has_freed = leave_as_holder(partition, ending, claim, resource, writes)
  end
  collect_ended_slot(writes, ending)
  local is_left_over = false
  if has_freed then is_left_over = grant_meeting(partition, resource, clock, writes) end
  local reply = reply_of_end(resource, is_left_over)
  delete_values(partition, writes)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return reply
end

-- Ends the claim of a party.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] to [4]: see begin_own_end
--   [5] w: only if the claim still waits; the reply is {fence, generation * 1024 + index} if it was granted. Or
--     nothing.
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'again'}: a
--   generation is open, and grants are about to follow: the same request must be sent again; or {'lost'} as in
--   slots.lua.
function entry.release_party(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_own_end(partition, arguments, ending, claim, resource)
  local reply = end_claim_of_party(partition, ending, claim, resource, arguments[5] == 'w')
  return reply
end

-- Ends the claim of a party whose session has expired, or by force that of any party.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] to [4]: see begin_end_by_other
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'again'}: a
--   generation is open, and grants are about to follow: the same request must be sent again; {'alive'}: no sweep has
--   ended its session.
-- Bounded: as release_party.
function entry.end_party(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_end_by_other(partition, arguments, ending, claim, resource)
  local reply = end_claim_of_party(partition, ending, claim, resource, arguments[5] == 'w')
  return reply
end

-- Continues where an earlier script stopped at its bound, in a barrier, phaser or exchanger.
--
-- KEYS: state, index, sessions, values
-- ARGV and Reply: as for entry recheck
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
