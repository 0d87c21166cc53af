-- The family GROUPS: mutexes and semaphores with a light switch. All members of a group share one permit. The first
-- request of a member changes the resource's family from PERMITS to GROUPS. In this family all holders have lines, also
-- those of a mutex, and there are no cohorts.

-- Changes the family of a resource to GROUPS. Returns the last fence that a cohort may use, or 0.
local function change_to_groups(resource, writes)
  local fences_used = 0
  resource.family = GROUPS
  local holder = tail_of_resource(resource.stored)
  if holder ~= '' then add_line(writes, holder_line(resource.name, holder)) end
  if resource.kind == MUTEX and resource.signalled > 0 then
    -- A cohort holds it, and may use the fences that it has reserved.
    fences_used, resource.signalled = resource.signalled, 0
    local sid, number = string.match(holder, '^(%w+):%d+:(%d+)$')
    if sid then writes.wakeups = {[sid] = number .. ' recall'} end
  end
  return fences_used
end

-- Returns the number of members of a group that have entered. note: \0 and the name of the group. Members that hold a
-- destroyed resource of the same name do not count.
local function read_members(partition, resource, note)
  local members = 0
  local stored = redis.call('HGET', partition.state, GROUP_FIELD .. resource.name .. note)
  if stored then
    local group = Group.read(stored)
    if group.created == resource.created then members = group.members end
  end
  return members
end

-- Returns whether a request gets its permits now, without queueing. A member whose group has entered needs no permit.
local function may_pass_in_group(partition, resource, claim, members)
  local is_free = resource.free >= claim.count
  local passes = members > 0 or is_free
    and (resource.waiting == 0 or resource.kind == OVERTAKING_SEMAPHORE and claim.mode ~= MEMBER)
  if is_free and not passes and claim.priority == PREFERRED then
    passes = has_no_preferred_waiter(partition, resource.name)
  end
  return passes
end

-- Puts a claim into the queue, and writes its line. A member's claim gets a second line, which is collected.
local function queue_claim_in_group(partition, resource, writes, claim, claim_id, note)
  redis.call('ZADD', partition.index, '0', queue_line(resource.name, claim.priority, claim.tick, claim_id))
  resource.waiting = resource.waiting + 1
  if claim.mode == MEMBER then add_line(writes, MEMBER_LINE .. resource.name .. note .. '\0' .. claim_id) end
end

-- Grants a claim its permits, which are free. Returns the reply.
local function grant_at_once_in_group(partition, resource, writes, claim, claim_id, note, members)
  local reply = claim.tick
  if claim.mode == CONSUME then
    redis.call('HSET', partition.state, 'clock', struct.pack(NUMBER_FORMAT, claim.tick))
    resource.free, resource.consumed = resource.free - claim.count, resource.consumed + claim.count
    claim.state, reply = GRANTED, 1
  else
    redis.call('ZADD', partition.index, '0', holder_line(resource.name, claim_id))
    claim.state = HELD
    if claim.mode == MEMBER then
      -- The group has the permit, the claim has none.
      set_field(writes, GROUP_FIELD .. resource.name .. note,
        struct.pack(Group.format, members + 1, resource.created))
      if members == 0 then resource.free = resource.free - claim.count end
      claim.count = 0
    else
      resource.free = resource.free - claim.count
    end
  end
  return reply
end

-- Acquires permits of a resource that groups use, as a member of a group or without one; or queues for them.
--
-- KEYS: state, index
-- ARGV
--   [1] to [3]: see Request
--   [4] kind and [5] permits of the resource, 1 by default: see read_or_create_resource
--   [6] mode: c consume, l lease, m lease of a mutex (by default), t lease as a member of a group
--   [7] wanted: number of permits, 1 by default
--   [8] if_free: 1 replies -1 when the permits cannot be granted now; 0 or nothing queues then
--   [9] priority: see entry acquire
--   [10] group: in mode t. A member whose group has entered needs no permit.
-- Reply: see entry acquire
function entry.acquire_in_group(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  local claim = read_wanted_claim(request, arguments)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5] or '1', GROUPS,
    claim.mode == MEMBER)
  resource.name = string.sub(resource.field, 3)
  local writes = Writes.new({hset = {}, hdel = {}, zadd = {}, zrem = {}, sessions = {}})
  local fences_used, note, members = 0, '', 0
  if resource.family == PERMITS then fences_used = change_to_groups(resource, writes) end
  if claim.mode == MEMBER then
    note = '\0' .. arguments[10]
    members = read_members(partition, resource, note)
  end
  local passes = may_pass_in_group(partition, resource, claim, members)
  if not passes and arguments[8] == '1' then return -1 end
  take_tick_after(partition, clock, fences_used)
  claim.tick, resource.created = clock.tick, resource.created or clock.tick
  local claim_id, reply = id_of_request(request), 0
  -- The first write of each case is one that Redis refuses at maxmemory, so that nothing is written then.
  if passes then
    reply = grant_at_once_in_group(partition, resource, writes, claim, claim_id, note, members)
  else
    queue_claim_in_group(partition, resource, writes, claim, claim_id, note)
  end
  set_field(writes, request.slot_field, Claim.write(claim) .. resource.field .. note)
  collect_resource(writes, resource)
  write_all_of_request(partition, slot, writes, clock)
  return reply
end

-- Grants what a request without a claim has freed, and writes everything. Returns the reply.
local function grant_to_groups_and_write(partition, request, slot, resource, clock)
  local writes = begin_changes(partition, request, resource, clock, '1')
  local is_left_over = grant_to_groups(partition, resource, clock, writes, false)
  collect_resource(writes, resource)
  write_all_of_request(partition, slot, writes, clock)
  return is_left_over and {'more', 1} or 1
end

-- Adds permits to a resource that groups use.
--
-- KEYS, ARGV and Reply: as for entry signal
-- Bounded: as release_in_group.
function entry.signal_groups(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], GROUPS, false)
  add_permits(resource, arguments[6] and tonumber(arguments[6]) or 1)
  write_signal_alone(partition, request, slot, resource)
  local reply = grant_to_groups_and_write(partition, request, slot, resource, clock)
  return reply
end

-- Creates a resource that groups use if it does not exist.
--
-- KEYS, ARGV and Reply: as for entry create
-- Bounded: as release_in_group.
function entry.create_for_groups(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], GROUPS, false)
  write_slot_before_creation(partition, request, resource)
  local writes = begin_changes(partition, request, resource, clock, resource.stored and '0' or '1')
  collect_resource(writes, resource)
  write_all_of_request(partition, slot, writes, clock)
  return resource.stored and 0 or 1
end

-- Changes the number of permits of a resource that groups use.
--
-- KEYS, ARGV and Reply: as for entry resize
-- Bounded: as release_in_group.
function entry.resize_for_groups(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], GROUPS, false)
  change_limit(resource, tonumber(arguments[6]))
  local reply = grant_to_groups_and_write(partition, request, slot, resource, clock)
  return reply
end

-- Continues where an earlier script stopped at its bound, in a resource that groups use.
--
-- KEYS, ARGV and Reply: as for entry recheck
function entry.recheck_groups(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local clock = Clock.new()
  local resource = read_resource_again(partition, arguments[1], GROUPS)
  local writes = Writes.new({hset = {}, hdel = {}, zadd = {}, zrem = {RECHECK_LINE .. resource.name}, sessions = {}})
  local is_left_over = grant_to_groups(partition, resource, clock, writes, true)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return is_left_over and {'more', 1} or 1
end

-- Removes a member from its group. Returns the number of permits that this releases: the last member releases that of
-- the group.
local function leave_group(partition, resource, writes, claim, note)
  local released = claim.count
  local group_field = GROUP_FIELD .. resource.name .. note
  local stored = redis.call('HGET', partition.state, group_field)
  local group = Group.new({members = 0, created = claim.tick + 1})
  if stored then Group.read_into(group, stored) end
  if group.created <= claim.tick and group.members > 1 then
    group.members = group.members - 1
    set_field(writes, group_field, Group.write(group))
  elseif group.created <= claim.tick then
    delete_field(writes, group_field)
    released = 1
  end
  return released
end

-- Releases the permits of a claim on a resource that groups use. Returns whether the resource is still that of the
-- claim, so that waiters may get the permits.
local function free_permits_in_group(partition, ending, claim, resource, writes, note)
  local is_current, released = resource.stored and claim.tick >= resource.created, claim.count
  -- The slot of a claim on a mutex may be HELD after the release (release_mutex): the line of the holder decides.
  if claim.state == HELD then
    local is_removed = redis.call('ZREM', partition.index, holder_line(resource.name, ending.claim_id))
    if is_removed == 0 then is_current = false end
  end
  if claim.state == GRANTED and is_current then resource.consumed = resource.consumed - claim.count end
  if claim.mode == MEMBER then released = leave_group(partition, resource, writes, claim, note) end
  if is_current then resource.free = resource.free + released end
  return is_current
end

-- Ends a claim on a resource that groups use, and writes everything. Returns the reply.
local function end_claim_in_group(partition, ending, claim, resource)
  -- A member of a destroyed resource may outlive it; the new one of the same name may have no groups.
  if resource.family == PERMITS and claim.mode ~= MEMBER then refuse({'family', resource.family}) end
  local clock = Clock.new()
  local note = string.sub(ending.stored, claim.name_at + #resource.field)
  local writes = Writes.new({hset = {}, hdel = {}, zadd = {}, zrem = {}, sessions = {}})
  local has_freed = false
  if claim.state == WAITING then
    remove_line(writes, queue_line(resource.name, claim.priority, claim.tick, ending.claim_id))
    if claim.mode == MEMBER then
      remove_line(writes, MEMBER_LINE .. resource.name .. note .. '\0' .. ending.claim_id)
    end
    if resource.stored then resource.waiting, has_freed = resource.waiting - 1, true end
  else
    has_freed = free_permits_in_group(partition, ending, claim, resource, writes, note)
  end
  collect_ended_slot(writes, ending)
  local is_left_over = false
  if has_freed then is_left_over = grant_to_groups(partition, resource, clock, writes, false) end
  local reply = reply_of_end(resource, is_left_over)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return reply
end

-- Releases a claim on a resource that groups use.
--
-- KEYS: state, index
-- ARGV
--   [1] to [4]: see begin_own_end
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'family',
--   FAMILY}: the script of this family must run instead; or {'lost'} as in slots.lua.
function entry.release_in_group(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_own_end(partition, arguments, ending, claim, resource)
  local reply = end_claim_in_group(partition, ending, claim, resource)
  return reply
end

-- Ends a claim on a resource that groups use, of an expired session, or by force one of any session.
--
-- KEYS: state, index
-- ARGV
--   [1] to [4]: see begin_end_by_other
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'alive'}: no
--   sweep has ended its session; {'family', FAMILY}: the script of this family must run instead.
-- Bounded: as release_in_group.
function entry.end_in_group(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_end_by_other(partition, arguments, ending, claim, resource)
  local reply = end_claim_in_group(partition, ending, claim, resource)
  return reply
end
