-- Bounded buffers. A buffer is two resources: its places, and its items (NAME#items). A put acquires a place and passes
-- it on: the place becomes an item. A take acquires an item, reads it (entry read), and passes it on: the item becomes
-- a place.

-- Refuses a put whose id the buffer remembers, {'known'}: its item was put, and may have been taken since. Ids that are
-- older than the buffer are those of a destroyed buffer of the same name.
local function check_known_put(partition, resource, id)
  local put_tick = resource.created and redis.call('ZSCORE', partition.put_ids, id)
  if put_tick and put_tick + 0 >= resource.created then refuse({'known'}) end
end

-- Remembers the id of a put, in the script that stores its item.
local function remember_put(partition, clock, id)
  redis.call('ZADD', partition.put_ids, string.format('%d', clock.tick), id)
  redis.call('ZREMRANGEBYRANK', partition.put_ids, '0', -MAX_PUT_IDS - 1)
  redis.call('PEXPIRE', partition.put_ids, PUT_ID_LIFETIME)
end

-- Acquires a place of a buffer for a put with an id, or queues.
--
-- KEYS: state, index, sessions, values, put ids
-- ARGV: as for entry acquire, and
--   [10] the id of the put
-- Reply: as for entry acquire; or {'known'}: see check_known_put.
-- Bounded: as acquire, and one id.
function entry.acquire_for_put(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], put_ids = keys[5]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_claim(partition, request, clock)
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  check_known_put(partition, resource, arguments[#arguments])
  local claim = read_wanted_claim(request, arguments)
  local reply = acquire_or_queue(partition, request, slot, resource, clock, claim, arguments[8])
  return reply
end

-- Returns the slot of the claim that a request passes on. Replies 1 if the request is repeated, {'none'} if the claim
-- is not held.
local function read_passed_slot(partition, request, claim_number)
  local slot = Slot.new({stored = redis.call('HGET', partition.state, request.slot_field)})
  if not slot.stored then refuse({'none'}) end
  Slot.read_into(slot, slot.stored)
  if slot.number == request.number then refuse(1) end
  if slot.state ~= HELD or slot.number ~= tonumber(claim_number) then refuse({'none'}) end
  -- The claim in this slot is passed on: for the resource that gets the permit, the slot is free.
  slot.state = DONE
  return slot
end

-- Returns the resource whose permit a claim passes on. Replies {'none'} if the claim is not on this resource, or has no
-- item to delete, and {'gone'} if the resource was destroyed.
local function read_passed_resource(partition, slot, claim, field, item)
  local stored = slot.stored
  if string.match(stored, '^%Z+', claim.name_at) ~= field or not item and claim.mode ~= ITEM then refuse({'none'}) end
  local passed = Resource.new({field = field, name = string.sub(field, 3),
    stored = redis.call('HGET', partition.state, field)})
  if not passed.stored then refuse({'gone'}) end
  Resource.read_into(passed, passed.stored)
  if claim.tick < passed.created or passed.kind == DESTROYED then refuse({'gone'}) end
  return passed
end

-- Stores the item that fills a place, or collects the deletion of the item that the claim has taken if there is no new
-- item.
local function store_or_delete_item(partition, slot, claim, resource, clock, writes, item)
  if item then
    local item_key = resource.name .. '\0' .. struct.pack(TICK_FORMAT, clock.tick)
    redis.call('HSET', partition.values, ITEM_FIELD .. item_key, item)
    writes.zadd[1], writes.zadd[2] = '0', ITEM_LINE .. item_key
  else
    writes.vdel[1] = ITEM_FIELD .. string.sub(slot.stored, claim.name_at + 2)
  end
end

-- Passes the permit of a claim on to a resource, and stores or deletes the item. Returns what is left to write.
local function pass_permit(partition, request, slot, resource, clock, arguments)
  local claim = Claim.read(slot.stored)
  local item = arguments[8]
  local passed = read_passed_resource(partition, slot, claim, arguments[7], item)
  -- A deletion first, after which Redis allows the writes also at maxmemory; but it must refuse a new item then.
  if not item then allow_writes(partition.state) end
  take_tick(partition, clock)
  resource.created, resource.name = resource.created or clock.tick, string.sub(resource.field, 3)
  local claim_id = string.sub(request.slot_field, 3) .. ':' .. arguments[6]
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {}, zrem = {holder_line(passed.name, claim_id)},
    sessions = {}})
  store_or_delete_item(partition, slot, claim, resource, clock, writes, item)
  passed.consumed = passed.consumed + claim.count
  writes.hset[1], writes.hset[2] = passed.field, Resource.write(passed)
  writes.hset[3], writes.hset[4] = request.slot_field, done_slot(request.number)
  add_permits(resource, claim.count)
  return writes
end

-- Grants the permit that was passed on, and writes everything. Returns the reply.
local function grant_passed_permit(partition, resource, clock, writes)
  local is_left_over = grant_permits(partition, resource, clock, writes, false)
  delete_values(partition, writes)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return is_left_over and {'more', 1} or 1
end

-- Turns a lease of one resource into a permit of another: a place of a buffer into an item, or an item into a place.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] NUMBER of this request, which ends the claim
--   [3] field of the resource that gets the permit: t:NAME; its [4] kind and [5] permits: see read_or_create_resource
--   [6] NUMBER of the claim
--   [7] field of the resource that the claim holds: t:NAME
--   [8] item: fills the place. Without it, the item that the claim has taken is deleted.
-- Reply: 1; {'more', 1} if waiters are left over for the next script; {'none'} if the claim is not held; {'gone'} if
--   its resource was destroyed; or a refusal of read_or_create_resource.
function entry.pass(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = read_passed_slot(partition, request, arguments[6])
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  local writes = pass_permit(partition, request, slot, resource, clock, arguments)
  local reply = grant_passed_permit(partition, resource, clock, writes)
  return reply
end

-- Turns a place into an item, for a put with an id.
--
-- KEYS: state, index, sessions, values, put ids
-- ARGV: as for entry pass, and
--   [9] the id of the put
-- Reply: as for entry pass; or {'known'}: see check_known_put.
-- Bounded: as pass, and one id.
function entry.pass_once(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4], put_ids = keys[5]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = read_passed_slot(partition, request, arguments[6])
  local resource = read_or_create_resource(partition, request, slot, arguments[4], arguments[5], PERMITS, false)
  check_known_put(partition, resource, arguments[#arguments])
  local writes = pass_permit(partition, request, slot, resource, clock, arguments)
  remember_put(partition, clock, arguments[9])
  local reply = grant_passed_permit(partition, resource, clock, writes)
  return reply
end

-- Ends the lease of an item that was not passed on, and writes everything: the item returns to its place in the buffer,
-- and is granted again. Returns the reply.
local function end_claim_on_item(partition, ending, claim, resource)
  -- A failover between the reply that names this script and the call has lost the grant.
  if claim.state == WAITING then refuse({'family', PERMITS}) end
  local clock = Clock.new()
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {},
    zrem = {holder_line(resource.name, ending.claim_id)}, sessions = {}})
  local has_freed = false
  local item_key = resource.name .. string.sub(ending.stored, claim.name_at + #resource.field)
  if resource.stored and claim.tick >= resource.created and resource.kind == ITEMS then
    resource.free, has_freed = resource.free + claim.count, true
    if claim.mode == ITEM then add_line(writes, ITEM_LINE .. item_key) end
  elseif claim.mode == ITEM then
    writes.vdel[1] = ITEM_FIELD .. item_key
  end
  collect_ended_slot(writes, ending)
  local is_left_over = false
  if has_freed then is_left_over = grant_permits(partition, resource, clock, writes, false) end
  local reply = reply_of_end(resource, is_left_over)
  delete_values(partition, writes)
  collect_resource(writes, resource)
  write_all(partition, writes, clock)
  return reply
end

-- Releases an item that the caller has acquired.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] to [4]: see begin_own_end
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'family',
--   FAMILY}: the script of this family must run instead; or {'lost'} as in slots.lua.
function entry.release_item(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_own_end(partition, arguments, ending, claim, resource)
  local reply = end_claim_on_item(partition, ending, claim, resource)
  return reply
end

-- Ends a claim on an item whose session has expired, or by force that of any session.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] to [4]: see begin_end_by_other
-- Reply: 1: ended; 0: there was no such claim; {'more', 1}: ended, and waiters are left over for recheck; {'alive'}: no
--   sweep has ended its session; {'family', FAMILY}: the script of this family must run instead.
-- Bounded: as release_item.
function entry.end_item(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local ending = read_ending(arguments)
  local claim = Claim.new()
  local resource = Resource.new({tail = ''})
  begin_end_by_other(partition, arguments, ending, claim, resource)
  local reply = end_claim_on_item(partition, ending, claim, resource)
  return reply
end
