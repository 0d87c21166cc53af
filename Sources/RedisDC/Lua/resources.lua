-- Resources: how requests of all families read, create and change them.

-- Refuses a slot that is HELD on the resource of the request, unless it is a mutex that has been released.
local function check_released_here(partition, request, slot, resource)
  local holder = id_of_claim(request.slot_field, slot.number)
  if claim_mode(slot.stored) ~= SOLE or tail_of_resource(resource.stored) == holder
    or resource.family == GROUPS
    and redis.call('ZSCORE', partition.index, holder_line(string.sub(resource.field, 3), holder)) then
    refuse({'occupied'})
  end
end

-- Refuses a request whose kind or number of permits is not that of the resource.
local function check_description(resource, kind, permits)
  if resource.kind ~= kind then
    if resource.kind == DESTROYED then refuse({'gone'}) end
    if resource.kind == BROKEN then refuse({'broken'}) end
    if string.sub(resource.kind, 1, 1) ~= kind then refuse({'conflict', resource.kind, resource.limit}) end
  end
  if permits and permits ~= '' then
    local requested = permits + 0
    if resource.permits ~= requested and resource.limit ~= requested then
      refuse({'conflict', resource.kind, resource.limit})
    end
  end
end

-- Reads the resource of a request, and creates it if it does not exist.
--
-- kind: two letters; one if `permits` is empty, for any policy. permits: those with which a missing resource is
-- created; empty: it must exist; nil: 1. is_member: a member of a group changes the family to GROUPS.
--
-- The tail of an existing resource is not read.
--
-- Refusals: {'missing'}; {'gone'}: destroyed, and not cleared yet; {'broken'}; {'conflict', kind, limit}, of the
-- existing resource; {'family', FAMILY}: the script of this family must run instead.
local function read_or_create_resource(partition, request, slot, kind, permits, family, is_member)
  local resource = Resource.new({field = request.resource_field, tail = '',
    stored = redis.call('HGET', partition.state, request.resource_field)})
  if resource.stored then
    Resource.read_into(resource, resource.stored)
    if slot.state == HELD then check_released_here(partition, request, slot, resource) end
    check_description(resource, kind, permits)
    if resource.family ~= family and not is_member then refuse({'family', resource.family}) end
  elseif permits == '' then
    refuse({'missing'})
  else
    -- The comparison first, because tonumber costs 1,500 instructions.
    resource.kind, resource.family, resource.permits = kind, family, permits == '1' and 1 or tonumber(permits or 1)
    resource.waiting, resource.free, resource.consumed = 0, resource.permits, 0
    resource.limit, resource.signalled = resource.permits, 0
  end
  return resource
end

-- Reads a resource and its tail from `stored`, if it exists.
local function read_resource(resource)
  if resource.stored then
    Resource.read_into(resource, resource.stored)
    resource.tail = tail_of_resource(resource.stored)
  end
end

-- Begins the changes of a request that creates no claim: its slot keeps `reply`, a text, and a new resource takes a
-- tick.
local function begin_changes(partition, request, resource, clock, reply)
  if not resource.stored then
    take_tick(partition, clock)
    resource.created = clock.tick
  else
    resource.tail = tail_of_resource(resource.stored)
  end
  resource.name = string.sub(resource.field, 3)
  local writes = Writes.new({hset = {request.slot_field, done_slot(request.number) .. reply}, hdel = {}, zadd = {},
    zrem = {}, sessions = {}})
  return writes
end

-- Adds permits to a resource.
local function add_permits(resource, count)
  resource.free, resource.signalled = resource.free + count, resource.signalled + count
end

-- Writes the permits that have been added to a resource without waiters, and ends the script. If Redis refuses the
-- write at maxmemory, it does nothing, and the caller writes with write_lists.
local function write_signal_alone(partition, request, slot, resource)
  if resource.stored and resource.waiting == 0 and resource.kind ~= CONDITION then
    local written = redis.pcall('HSET', partition.state, request.slot_field, done_slot(request.number),
      resource.field, Resource.write(resource))
    if written == 0 or type(written) == 'number' then
      write_session_of_slot(partition, slot)
      refuse(1)
    end
  end
end

-- Changes the number of permits of a resource. Permits that are held stay held: free may become negative.
local function change_limit(resource, limit)
  resource.free, resource.limit = resource.free + limit - resource.limit, limit
end

-- Writes the slot before the record of a new resource: Redis refuses this write at maxmemory, so that nothing is
-- written then.
local function write_slot_before_creation(partition, request, resource)
  if not resource.stored then
    redis.call('HSET', partition.state, request.slot_field, done_slot(request.number))
  end
end

-- Reads the resource that a script continues to work on, where an earlier one stopped at its bound. Refuses a resource
-- of another family; CLEARING is the family of one that is destroyed or broken.
local function read_resource_again(partition, name, family)
  local resource = Resource.new({field = RESOURCE_FIELD .. name, name = name, tail = ''})
  resource.stored = redis.call('HGET', partition.state, resource.field)
  if resource.stored then
    Resource.read_into(resource, resource.stored)
    resource.tail = tail_of_resource(resource.stored)
    local needed = (resource.kind == DESTROYED or resource.kind == BROKEN) and CLEARING or resource.family
    if needed ~= family then refuse({'family', needed}) end
  end
  return resource
end
