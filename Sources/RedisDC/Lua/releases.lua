-- Ends claims on permits, and changes leases: reduces their permits, and reserves fences for cohorts.

-- Refuses to end a claim if the caller names another resource than the claim's.
local function check_claimed_resource(ending, claim, resource)
  if string.sub(ending.stored, claim.name_at) ~= resource.field then
    refuse(redis.error_reply('RDC the claim ' .. ending.claim_id .. ' is not of ' .. resource.name))
  end
end

-- Ends the lease of a mutex whose record names the claim. used: the last fence that a cohort has used; nil: all
-- reserved fences count as used.
local function end_named_claim(partition, ending, resource, clock, used)
  resource.tail = ''
  if ending.is_cohort then
    -- The clock passes the fences that the cohort has used.
    local last = read_last_tick(partition.state)
    clock.tick = math.max(tonumber(used or resource.signalled), last)
    resource.signalled = 0
  end
end

-- Ends a claim on permits, and writes everything: removes a waiter from the queue, releases the permits of a holder.
-- Returns the reply.
local function end_claim_on_permits(partition, ending, claim, resource, used)
  if resource.family == GROUPS then refuse({'family', resource.family}) end
  if claim.mode == ITEM then refuse({'family', claim.mode}) end
  check_claimed_resource(ending, claim, resource)
  local clock = Clock.new()
  local writes = Writes.new({hset = {}, hdel = {}, zadd = {}, zrem = {}, sessions = {}})
  local has_freed = false
  if claim.state == WAITING then
    writes.zrem[1] = queue_line(resource.name, claim.priority, claim.tick, ending.claim_id)
    if resource.stored then resource.waiting, has_freed = resource.waiting - 1, true end
  else
    if ending.is_named then
      end_named_claim(partition, ending, resource, clock, used)
    elseif claim.state == HELD then
      writes.zrem[1] = holder_line(resource.name, ending.claim_id)
    end
    -- The claim may be on a destroyed resource of the same name.
    if resource.stored and claim.tick >= resource.created then
      resource.free, has_freed = resource.free + claim.count, true
      if claim.state == GRANTED then resource.consumed = resource.consumed - claim.count end
    end
  end
  local reply = grant_after_end(partition, ending, resource, clock, writes, has_freed)
  return reply
end

-- Grants what the end of a claim has freed, and writes everything. Returns the reply.
local function grant_after_end(partition, ending, resource, clock, writes, has_freed)
  collect_ended_slot(writes, ending)
  local is_left_over = false
  if has_freed then is_left_over = grant_permits(partition, resource, clock, writes, false) end
  local reply = reply_of_end(resource, is_left_over)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return reply
end

-- Releases permits: of a waiter, a holder or a cohort.
--
-- KEYS: state, index
-- ARGV
--   [1] to [4]: see begin_own_end
--   [5] used: the last fence that a cohort has used. Without it, all reserved fences count as used.
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'family',
--   FAMILY}: the script of this family must run instead; or {'lost'} as in slots.lua.
function entry.release(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_own_end(partition, arguments, ending, claim, resource)
  local reply = end_claim_on_permits(partition, ending, claim, resource, arguments[5])
  return reply
end

-- Releases a mutex. One that nobody waits for: deletes its record, which names the holder, and nothing else. The slot
-- keeps saying HELD until its next request. No script relies on it: all compare a mutex's claim with the record.
--
-- KEYS, ARGV and Reply: as for entry release
function entry.release_mutex(keys, arguments)
  local partition = Partition.new({state = keys[1]})
  local named = redis.call('HGET', partition.state, arguments[3])
  if named and string.sub(named, 1, #MUTEX_WITHOUT_WAITERS) == MUTEX_WITHOUT_WAITERS
    and tail_of_resource(named) == string.sub(arguments[1], 3) .. ':' .. arguments[4] then
    redis.call('HDEL', partition.state, arguments[3])
    return 1
  end
  partition.index = keys[2]
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_own_end(partition, arguments, ending, claim, resource)
  local reply = end_claim_on_permits(partition, ending, claim, resource, arguments[5])
  return reply
end

-- Ends a claim on permits whose session has expired, or by force that of any session.
--
-- KEYS: state, index
-- ARGV
--   [1] to [4]: see begin_end_by_other
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'alive'}: no
--   sweep has ended its session; {'family', FAMILY}: the script of this family must run instead.
-- Bounded: as release.
function entry.end_permits(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_end_by_other(partition, arguments, ending, claim, resource)
  local reply = end_claim_on_permits(partition, ending, claim, resource, arguments[5])
  return reply
end

-- Releases some of the permits of a lease and keeps its fence: a writer becomes a reader.
--
-- KEYS: state, index
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] not used
--   [3] the field of the claim's resource: t:NAME
--   [4] NUMBER of the claim
--   [5] keep: number of permits to keep
-- Reply: permits that the claim has had before this script, 0 if it is not held; {'more', permits} if waiters are left
--   over for the next script.
-- Bounded: as release.
function entry.reduce(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2]})
  local clock = Clock.new()
  local slot_field, keep = arguments[1], tonumber(arguments[5])
  local resource = Resource.new({field = arguments[3], name = string.sub(arguments[3], 3), tail = ''})
  local stored = redis.call('HMGET', partition.state, slot_field, resource.field)
  resource.stored = stored[2]
  if not stored[1] or slot_state(stored[1]) ~= HELD then return 0 end
  local claim = Claim.read(stored[1])
  if claim.number ~= tonumber(arguments[4]) then return 0 end
  if string.sub(stored[1], claim.name_at) ~= resource.field then
    return redis.error_reply('RDC the claim ' .. slot_field .. ' is not of ' .. resource.name)
  end
  local count = claim.count
  if count <= keep then return count end
  claim.count = keep
  local writes = Writes.new({hset = {slot_field, Claim.write(claim) .. resource.field}, hdel = {}, zadd = {}, zrem = {},
    sessions = {}})
  read_resource(resource)
  if resource.stored and claim.tick >= resource.created then resource.free = resource.free + count - keep end
  local is_left_over = grant_permits(partition, resource, clock, writes, false)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return is_left_over and {'more', count} or count
end

-- Reserves more fences for a cohort that holds a mutex, and says whether others wait for it.
--
-- KEYS: state, index
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] not used
--   [3] the field of the mutex: t:NAME
--   [4] NUMBER of the claim
--   [5] used: the last fence that the cohort has used
-- Reply: {the last fence that it may use, number of waiters}, or {'none'} if the mutex's record does not name the
--   claim: it is not held, or groups use the mutex.
-- Bounded: one claim.
function entry.extend_fences(keys, arguments)
  local partition = Partition.new({state = keys[1]})
  local stored = redis.call('HGET', partition.state, arguments[3])
  if not stored or tail_of_resource(stored) ~= string.sub(arguments[1], 3) .. ':' .. arguments[4] then
    return {'none'}
  end
  local resource = Resource.read(stored)
  if resource.kind ~= MUTEX or resource.family ~= PERMITS then return {'none'} end
  -- A deletion first, after which Redis allows the write also at maxmemory.
  allow_writes(partition.state)
  resource.signalled = math.max(resource.signalled, arguments[5] + FENCES)
  redis.call('HSET', partition.state, arguments[3], Resource.write(resource) .. tail_of_resource(stored))
  return {resource.signalled, resource.waiting}
end
