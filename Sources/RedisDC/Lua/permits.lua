-- The family PERMITS: mutexes, semaphores, read-write locks, conditions, turnstiles, latches and buffers. A resource
-- has permits, and its waiters get them in the order of the queue (grant.lua).

-- Reads the claim that a request asks for from its arguments [6] mode, [7] wanted and [9] priority.
local function read_wanted_claim(request, arguments)
  local claim = Claim.new({state = WAITING, number = request.number,
    count = arguments[7] and tonumber(arguments[7]) or 1, mode = arguments[6] or SOLE,
    priority = arguments[9] or ORDINARY})
  return claim
end

-- Returns whether no waiter has the priority PREFERRED.
local function has_no_preferred_waiter(partition, name)
  local from, to = '[' .. QUEUE_LINE .. name .. '\0' .. PREFERRED, '(' .. QUEUE_LINE .. name .. '\0' .. ORDINARY
  return #redis.call('ZRANGEBYLEX', partition.index, from, to, 'LIMIT', '0', '1') == 0
end

-- Returns whether a request gets its permits now, without queueing.
local function may_pass(partition, resource, claim)
  local passes = resource.free >= claim.count and (resource.waiting == 0 or resource.kind == OVERTAKING_SEMAPHORE)
  if not passes and resource.free >= claim.count and claim.priority == PREFERRED then
    passes = has_no_preferred_waiter(partition, string.sub(resource.field, 3))
  end
  return passes
end

-- Recalls a mutex from the cohort that holds it, for the first request that finds it there: a message asks the cohort's
-- process to release it soon.
local function recall_cohort(partition, resource)
  if resource.kind == MUTEX and resource.signalled > 0 and resource.waiting == 0 then
    local sid, number = string.match(tail_of_resource(resource.stored), '^(%w+):%d+:(%d+)$')
    if sid then redis.call('PUBLISH', wake_channel(partition.state) .. sid, '0 ' .. number .. ' recall') end
  end
end

-- Consumes permits of an existing resource, which takes no tick.
local function consume_at_once(partition, request, slot, resource, claim)
  claim.state, claim.tick = GRANTED, resource.created
  resource.free, resource.consumed = resource.free - claim.count, resource.consumed + claim.count
  redis.call('HSET', partition.state, request.slot_field, Claim.write(claim) .. resource.field,
    resource.field, Resource.write(resource))
  write_session_of_slot(partition, slot)
end

-- Puts a claim into the queue, and writes its line.
local function queue_claim(partition, resource, claim, claim_id)
  redis.call('ZADD', partition.index, '0',
    queue_line(string.sub(resource.field, 3), claim.priority, claim.tick, claim_id))
  resource.waiting = resource.waiting + 1
  if resource.stored then resource.tail = tail_of_resource(resource.stored) end
end

-- Grants a claim its permits, which are free. Returns the reply.
local function grant_at_once(partition, resource, claim, claim_id)
  resource.free = resource.free - claim.count
  local reply = claim.tick
  if claim.mode == CONSUME then
    resource.consumed, claim.state, reply = resource.consumed + claim.count, GRANTED, 1
  else
    claim.state = HELD
    if claim.mode == SOLE then
      resource.tail = claim_id
    elseif claim.mode == COHORT then
      -- 1: there are no waiters behind the cohort, as in make_holder.
      resource.tail, resource.signalled, reply = claim_id, claim.tick + FENCES - 1, {claim.tick, 1}
    else
      redis.call('ZADD', partition.index, '0', holder_line(string.sub(resource.field, 3), claim_id))
    end
  end
  return reply
end

-- Returns whether a request locks a mutex that has no record, because nobody holds it.
local function is_first_lock(resource, claim)
  return claim.mode == SOLE and not resource.stored and resource.kind == MUTEX and resource.permits == 1
    and claim.count == 1 and claim.priority == ORDINARY
end

-- Locks a mutex that has no record: the usual lock. Writes what acquire_or_queue would write, but composes the records
-- of the values that are known before, because packing all fields costs twice as much.
local function lock_first(partition, request, slot, clock)
  take_tick(partition, clock)
  local tick = struct.pack(NUMBER_FORMAT, clock.tick)
  redis.call('HSET', partition.state, request.slot_field,
    HELD .. struct.pack(NUMBER_FORMAT, request.number) .. ONE .. tick .. SOLE .. ORDINARY .. request.resource_field,
    request.resource_field, LOCKED_MUTEX .. tick .. NEVER .. id_of_request(request), 'clock', tick)
  write_session_of_slot(partition, slot)
  return clock.tick
end

-- Acquires permits, or queues for them. if_free: '1' ends the script with -1 when the permits cannot be granted now.
-- Returns the reply.
local function acquire_or_queue(partition, request, slot, resource, clock, claim, if_free)
  local passes = may_pass(partition, resource, claim)
  if passes and claim.mode == CONSUME and resource.stored then
    consume_at_once(partition, request, slot, resource, claim)
    refuse(1)
  end
  if not passes then
    recall_cohort(partition, resource)
    if if_free == '1' then refuse(-1) end
  end
  take_tick(partition, clock)
  claim.tick, resource.created = clock.tick, resource.created or clock.tick
  local claim_id, reply = id_of_request(request), 0
  -- The first write of each case is one that Redis refuses at maxmemory, so that nothing is written then.
  if passes then
    reply = grant_at_once(partition, resource, claim, claim_id)
  else
    queue_claim(partition, resource, claim, claim_id)
  end
  redis.call('HSET', partition.state, request.slot_field, Claim.write(claim) .. resource.field,
    resource.field, record_with_tail(resource), 'clock', struct.pack(NUMBER_FORMAT, clock.tick))
  write_session_of_slot(partition, slot)
  return reply
end

-- Acquires permits, or queues for them.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource, 1 by default: see read_or_create_resource
--   [6] mode: c consume, l lease, m lease of a mutex (by default), k lease of a mutex for a cohort
--   [7] wanted: number of permits, 1 by default
--   [8] if_free: 1 replies -1 when the permits cannot be granted now; 0 or nothing queues then
--   [9] priority: 0 precedes all waiters with 1 and does not queue behind them; 1 or nothing by default
-- The first request that finds the mutex with a cohort recalls it.
-- Reply: the fence, or 1 for permits to consume; 0: queued; -1: see [8]; {fence, 1} for a cohort; {fence, count} if the
--   request is repeated after the grant; {'over', word} if its claim was ended by another (see DONE); or a refusal of
--   slots.lua or of read_or_create_resource.
function entry.acquire(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5] or '1', PERMITS, false)
  local claim = read_wanted_claim(request, arguments)
  if is_first_lock(resource, claim) then
    local fence = lock_first(partition, request, slot, clock)
    return fence
  end
  local reply = acquire_or_queue(partition, request, slot, resource, clock, claim, arguments[8])
  return reply
end

-- Grants what a request without a claim has freed, and writes everything. Returns the reply.
local function grant_and_write(partition, request, slot, resource, clock)
  local writes = begin_changes(partition, request, resource, clock, '1')
  local is_left_over = grant_permits(partition, resource, clock, writes, false)
  collect_resource(writes, resource)
  write_all_of_request(partition, slot, writes, clock)
  return is_left_over and {'more', 1} or 1
end

-- Adds permits.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
--   [6] count: number of permits to add, 1 by default
-- Reply: 1; {'more', 1} if waiters are left over for the next script; or a refusal of slots.lua or of
--   read_or_create_resource.
function entry.signal(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  add_permits(resource, arguments[6] and tonumber(arguments[6]) or 1)
  write_signal_alone(partition, request, slot, resource)
  local reply = grant_and_write(partition, request, slot, resource, clock)
  return reply
end

-- Creates a resource if it does not exist.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
-- Reply: 1 if this request created it, else 0; or a refusal of slots.lua or of read_or_create_resource.
-- Bounded: as signal.
function entry.create(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  write_slot_before_creation(partition, request, resource)
  local writes = begin_changes(partition, request, resource, clock, resource.stored and '0' or '1')
  collect_resource(writes, resource)
  write_all_of_request(partition, slot, writes, clock)
  return resource.stored and 0 or 1
end

-- Changes the number of permits of a resource. Permits that are held stay held: free may become negative.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
--   [6] limit: the new number of permits
-- Reply: 1; {'more', 1} if waiters are left over for the next script; or a refusal of slots.lua or of
--   read_or_create_resource.
-- Bounded: as signal.
function entry.resize(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  change_limit(resource, tonumber(arguments[6]))
  local reply = grant_and_write(partition, request, slot, resource, clock)
  return reply
end

-- Opens a turnstile, or locks it.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource: see read_or_create_resource
--   [6] is_open: 1 to open it, 0 to lock it
-- Reply: 1; {'more', 1} if waiters are left over for the next script; or a refusal of slots.lua or of
--   read_or_create_resource.
-- Bounded: as signal.
function entry.set_turnstile(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  local passages = arguments[6] == '1' and OPEN or 0
  resource.limit, resource.free = resource.limit + passages - resource.free, passages
  local reply = grant_and_write(partition, request, slot, resource, clock)
  return reply
end

-- Continues where an earlier script stopped at its bound, or grants to waiters that may be overtaken. Any process may
-- run it, without a session.
--
-- KEYS: state, index
-- ARGV
--   [1] NAME
-- Reply: 1; {'more', 1} if there is still work left over for the next script; {'family', FAMILY}: the script of this
--   family must run instead, x for one that clears a destroyed or broken resource.
function entry.recheck(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local clock = Clock.new()
  local resource = read_resource_again(partition, arguments[1], PERMITS)
  local writes = Writes.new({hset = {}, hdel = {}, zadd = {}, zrem = {RECHECK_LINE .. resource.name}, sessions = {}})
  local is_left_over = grant_permits(partition, resource, clock, writes, true)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return is_left_over and {'more', 1} or 1
end
