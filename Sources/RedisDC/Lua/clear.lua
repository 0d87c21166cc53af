-- Destroyed and broken resources. Destroying a resource marks its record. Clearing it refuses its waiters and, if it is
-- destroyed, deletes what is stored under its name and then its record, in steps that any process continues. Holders
-- keep their leases.

-- The number of waiters that one step refuses, the number of lines of each letter that it removes, and the bytes of
-- items after which it stops.
local STEP_WAITERS, STEP_LINES, STEP_BYTES = 160, 320, 8388608

-- Refuses a waiter: its slot keeps the verdict, gone or broken, and its session receives it.
local function refuse_waiter(partition, resource, writes, line, verdict)
  local waiter = read_waiter(line, queue_claim_at(resource.name))
  local stored = redis.call('HGET', partition.state, waiter.slot_field)
  remove_line(writes, line)
  local claim = Claim.new()
  if stored and slot_state(stored) == WAITING then Claim.read_into(claim, stored) end
  if claim.number == tonumber(waiter.number) then
    if claim.mode == MEETING then delete_value(writes, BROUGHT_FIELD .. waiter.id) end
    if claim.mode == MEMBER then
      local note = string.sub(stored, claim.name_at + #resource.field)
      remove_line(writes, MEMBER_LINE .. resource.name .. note .. '\0' .. waiter.id)
    end
    set_field(writes, waiter.slot_field, done_slot(claim.number) .. verdict)
    local session = read_session(partition, writes, waiter.sid)
    if session.notices then add_notice(session) end
    add_wakeup(writes, waiter.sid, waiter.number, verdict)
  end
end

-- Refuses the first waiters. Returns whether these were all.
local function refuse_waiters(partition, resource, writes)
  local verdict = resource.kind == DESTROYED and 'gone' or 'broken'
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(QUEUE_LINE, resource.name),
    after_last_line(QUEUE_LINE, resource.name), 'LIMIT', '0', STEP_WAITERS)
  writes.wakeups = writes.wakeups or {}
  for i = 1, #lines do refuse_waiter(partition, resource, writes, lines[i], verdict) end
  resource.waiting = #lines < STEP_WAITERS and 0 or math.max(0, resource.waiting - STEP_WAITERS)
  return #lines < STEP_WAITERS
end

-- Removes the first lines that begin with a letter, and the items that they name. Returns whether these were all.
local function remove_lines(partition, name, writes, letter)
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(letter, name), after_last_line(letter, name),
    'LIMIT', '0', STEP_LINES)
  local bytes, is_done = 0, #lines < STEP_LINES
  for i = 1, #lines do
    if bytes >= STEP_BYTES then
      is_done = false
      break
    end
    remove_line(writes, lines[i])
    if letter == ITEM_LINE then
      local item_field = ITEM_FIELD .. string.sub(lines[i], 2)
      delete_value(writes, item_field)
      bytes = bytes + redis.call('HSTRLEN', partition.values, item_field)
    end
  end
  return is_done
end

-- Clears one step of a destroyed or broken resource, and collects its record or the deletion. Returns whether there is
-- work left over for the next script.
local function clear_step(partition, resource, writes)
  local is_done = true
  if resource.kind and resource.waiting > 0 then is_done = refuse_waiters(partition, resource, writes) end
  if resource.kind == DESTROYED then
    for _, letter in ipairs({COUNTED_LINE, ITEM_LINE, ENTERING_LINE}) do
      local has_removed_all = remove_lines(partition, resource.name, writes, letter)
      is_done = is_done and has_removed_all
    end
  end
  local is_left_over = resource.kind and not is_done
  if is_left_over then add_recheck(writes, resource.name) end
  if resource.kind == DESTROYED and is_done then
    delete_field(writes, resource.field)
  elseif resource.kind then
    set_field(writes, resource.field, record_with_tail(resource))
  end
  return is_left_over
end

-- Destroys the items of a buffer in the same step as its places, because an item that is put between two steps would
-- have no place. A later script clears them.
local function destroy_items(partition, resource, writes)
  local items_field = resource.field .. ITEMS_SUFFIX
  local items = redis.call('HGET', partition.state, items_field)
  if items and string.sub(items, 1, 2) == ITEMS then
    set_field(writes, items_field, DESTROYED .. string.sub(items, 3))
    add_recheck(writes, resource.name .. ITEMS_SUFFIX)
  end
end

-- Marks a resource as destroyed. kind: only its first letter is compared.
local function mark_destroyed(partition, resource, clock, writes, kind)
  Resource.read_into(resource, resource.stored)
  resource.tail = tail_of_resource(resource.stored)
  if resource.kind ~= DESTROYED and resource.kind ~= BROKEN
    and string.sub(resource.kind, 1, 1) ~= string.sub(kind, 1, 1) then
    refuse({'conflict', resource.kind, resource.limit})
  end
  if resource.kind == MUTEX and resource.signalled > 0 then
    -- The clock passes the fences that a cohort may use.
    local last = read_last_tick(partition.state)
    clock.tick, resource.signalled = math.max(resource.signalled, last), 0
  end
  if string.sub(resource.kind, 1, 1) == BUFFER then destroy_items(partition, resource, writes) end
  resource.kind = DESTROYED
end

-- Destroys a resource: refuses its waiters, while holders keep their leases. Does the first step of clearing; the rest
-- is left over for later scripts.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] to [3]: see Request
--   [4] kind: only its first letter is compared
-- Reply: 1 if it existed, else 0; {'more', 1} if there is work left over for the next script; {'conflict', kind, limit}
--   (of the existing resource); or a refusal of slots.lua.
function entry.destroy(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local request = read_request(arguments)
  local clock = Clock.new()
  local slot = begin_call(partition, request, clock)
  local resource = Resource.new({field = request.resource_field, name = string.sub(request.resource_field, 3),
    tail = '', stored = redis.call('HGET', partition.state, request.resource_field)})
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {}, zrem = {}, sessions = {}})
  if resource.stored then mark_destroyed(partition, resource, clock, writes, arguments[4]) end
  set_field(writes, request.slot_field, done_slot(request.number) .. (resource.stored and '1' or '0'))
  local is_left_over = clear_step(partition, resource, writes)
  delete_values(partition, writes)
  write_all_of_request(partition, slot, writes, clock)
  return is_left_over and {'more', 1} or resource.stored and 1 or 0
end

-- Does one step of clearing a destroyed or broken resource. Any process may run it, without a session.
--
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] NAME
-- Reply: 1; {'more', 1} if there is still work left over for the next script; {'family', FAMILY}: the resource is
--   neither destroyed nor broken, and the script of this family must run instead.
function entry.clear(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local clock = Clock.new()
  local resource = read_resource_again(partition, arguments[1], CLEARING)
  local writes = Writes.new({hset = {}, hdel = {}, vdel = {}, zadd = {}, zrem = {RECHECK_LINE .. resource.name},
    sessions = {}})
  local is_left_over = clear_step(partition, resource, writes)
  delete_values(partition, writes)
  write_all(partition, writes, clock)
  return is_left_over and {'more', 1} or 1
end
