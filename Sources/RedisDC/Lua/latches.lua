-- Latches. A latch is closed until it has been counted down as often as it has permits; then it has OPEN permits, and
-- every waiter passes. The end of a participant's claim counts down.

-- Closes a latch that the request creates, unless its count is 0.
local function close_new_latch(resource)
  if not resource.stored then resource.free = resource.limit == 0 and OPEN or 0 end
end

-- Waits for a latch: acquires a permit to consume, or queues.
--
-- KEYS, ARGV and Reply: as for entry acquire
function entry.wait_for_latch(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  close_new_latch(resource)
  local claim = read_wanted_claim(request, arguments)
  local reply = acquire_or_queue(partition, request, slot, resource, clock, claim, arguments[8])
  return reply
end

-- Counts down a latch that is not open, once for each ID; an empty ID counts in any case.
local function count_down_once(partition, resource, id)
  local is_first = true
  if id ~= '' then
    allow_writes(partition.state)
    local line = COUNTED_LINE .. string.sub(resource.field, 3) .. '\0' .. id
    is_first = redis.call('ZADD', partition.index, '0', line) == 1
  end
  if is_first then resource.signalled = resource.signalled + 1 end
  if resource.signalled == resource.limit then resource.free = OPEN end
end

-- Counts down a latch, once for each ID. An open latch stays open, and notes no more IDs.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
--   [6] ID, or empty to count in any case
-- Reply: the remaining count; {'more', remaining} if waiters are left over for the next script; or a refusal of
--   slots.lua or of read_or_create_resource.
function entry.count_down(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  close_new_latch(resource)
  if resource.signalled < resource.limit then count_down_once(partition, resource, arguments[6]) end
  local remaining = math.max(0, resource.limit - resource.signalled)
  local writes = begin_changes(partition, request, resource, clock, string.format('%d', remaining))
  local is_left_over = grant_permits(partition, resource, clock, writes, false)
  collect_resource(writes, resource)
  write_all_of_request(partition, slot, writes, clock)
  return is_left_over and {'more', remaining} or remaining
end

-- Registers a participant of a latch or a party of a phaser: creates a lease, and writes everything. Returns the fence.
local function register_party(partition, request, slot, resource, clock, mode)
  if resource.kind == PHASER and resource.limit >= MAX_PARTIES then
    local name = string.sub(resource.field, 3)
    refuse(redis.error_reply('RDC the phaser ' .. name .. ' has 1024 parties, which is the most'))
  end
  take_tick(partition, clock)
  resource.created = resource.created or clock.tick
  if resource.stored then resource.tail = tail_of_resource(resource.stored) end
  if resource.kind == PHASER then resource.limit = resource.limit + 1 end
  local line = holder_line(string.sub(resource.field, 3), id_of_request(request))
  redis.call('ZADD', partition.index, '0', line)
  local claim = Claim.new({state = HELD, number = request.number, count = 1, tick = clock.tick, mode = mode,
    priority = ORDINARY})
  redis.call('HSET', partition.state, request.slot_field, Claim.write(claim) .. resource.field,
    resource.field, record_with_tail(resource), 'clock', struct.pack(NUMBER_FORMAT, clock.tick))
  write_session_of_slot(partition, slot)
  return clock.tick
end

-- Registers a participant of a latch: the end of its claim counts down.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
--   [6] mode: p participant of a latch
-- Reply: the fence; {fence, count} if the request is repeated; {'over', word} if its claim was ended by another (see
--   DONE); or a refusal of slots.lua or of read_or_create_resource.
-- Bounded: one claim.
function entry.participate(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  close_new_latch(resource)
  local fence = register_party(partition, request, slot, resource, clock, arguments[6])
  return fence
end

-- Ends the claim of a participant of a latch, and writes everything: counts down, or breaks the latch if others end the
-- claim and the latch breaks by death. Returns the reply.
local function end_claim_of_participant(partition, ending, claim, resource)
  local clock = Clock.new()
  local writes = Writes.new({hset = {}, hdel = {}, zadd = {}, zrem = {holder_line(resource.name, ending.claim_id)},
    sessions = {}})
  local has_freed = false
  if resource.stored and claim.tick >= resource.created and resource.kind ~= DESTROYED and resource.kind ~= BROKEN then
    if ending.by_other and resource.kind == LATCH_BROKEN_BY_DEATH then
      resource.kind = BROKEN
      add_recheck(writes, resource.name)
    else
      resource.signalled = resource.signalled + 1
      if resource.signalled == resource.limit then resource.free, has_freed = OPEN, true end
    end
  end
  local reply = grant_after_end(partition, ending, resource, clock, writes, has_freed)
  return reply
end

-- Ends the participation of the caller in a latch, which counts down.
--
-- KEYS: state, index
-- ARGV
--   [1] to [4]: see begin_own_end
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; or {'lost'}
--   as in slots.lua.
-- Bounded: as release.
function entry.release_participant(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_own_end(partition, arguments, ending, claim, resource)
  local reply = end_claim_of_participant(partition, ending, claim, resource)
  return reply
end

-- Ends the participation of an expired session, or by force that of any session: counts down or breaks the latch.
--
-- KEYS: state, index
-- ARGV
--   [1] to [4]: see begin_end_by_other
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'alive'}: no
--   sweep has ended its session.
-- Bounded: as release.
function entry.end_participant(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_end_by_other(partition, arguments, ending, claim, resource)
  local reply = end_claim_of_participant(partition, ending, claim, resource)
  return reply
end
