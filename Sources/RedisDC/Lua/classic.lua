-- Classic semaphores: a semaphore is a Redis list with one element for each permit, so that a program in any language
-- takes a permit with BRPOP and adds one with LPUSH. The entries are the operations that one command cannot do.
--
-- KEYS of a semaphore:
--   permits     list with an element for each permit
--   meta        hash with `permits`, the number that the semaphore was created with, and `missing`, how many of them
--               are not in the list yet
--   tombstones  list that wakes the waiters of a destroyed semaphore. Its key expires.

-- The maximum numbers of permits that one script and one command add.
local MAX_STEP, MAX_BATCH = 10000, 4000

-- Refuses a key of the permits that does not hold a list.
local function check_permits_key(permits_key)
  local type_found = redis.call('TYPE', permits_key).ok
  if type_found ~= 'none' and type_found ~= 'list' then
    local message = 'WRONGTYPE ' .. permits_key .. ' holds a ' .. type_found .. ', not the permits of a semaphore'
    refuse(redis.error_reply(message))
  end
end

-- Writes how many permits are not in the list yet.
local function write_missing(meta_key, missing)
  if missing > 0 then
    redis.call('HSET', meta_key, 'missing', string.format('%d', missing))
  else
    redis.call('HDEL', meta_key, 'missing')
  end
end

-- Adds permits to the list, in batches, because Lua cannot pass any number of arguments.
local function push_permits(permits_key, count)
  while count > 0 do
    local batch = {}
    for i = 1, math.min(count, MAX_BATCH) do batch[i] = '1' end
    redis.call('LPUSH', permits_key, unpack(batch))
    count = count - #batch
  end
end

-- Creates a classic semaphore exactly once, however many programs call this, in steps of 10,000 permits: each call of
-- any program adds the permits of one step until none is missing. KEYS
--   [1] permits
--   [2] meta
--   [3] tombstones
-- ARGV
--   [1] permits: number of permits
--   [2] 1 to add a step to an existing semaphore only, or nothing
-- Reply: {1, permits, missing} if this call created it, {0, permits that it was created with, missing} if it existed.
--   With [2], {0, permits, 0} if it has been destroyed. If it has other permits, nothing is added.
-- Refuses with the error WRONGTYPE if the key of the permits is not a list.
function entry.classic_create(keys, arguments)
  local permits_key, meta_key = keys[1], keys[2]
  local permits, adds_step_only = tonumber(arguments[1]), arguments[2]
  check_permits_key(permits_key)
  local stored = redis.call('HMGET', meta_key, 'permits', 'missing')
  local existing, missing = tonumber(stored[1] or nil), tonumber(stored[2] or 0)
  if existing and existing ~= permits then return {0, existing, 0} end
  if not existing then
    if adds_step_only then return {0, permits, 0} end
    redis.call('HSET', meta_key, 'permits', string.format('%d', permits))
    redis.call('DEL', keys[3])
    missing = permits
  end
  if missing > 0 then
    local step = math.min(missing, MAX_STEP)
    missing = missing - step
    write_missing(meta_key, missing)
    push_permits(permits_key, step)
  end
  return {existing and 0 or 1, permits, missing}
end

-- Destroys a classic semaphore and wakes its waiters with tombstones.
-- KEYS
--   [1] permits
--   [2] meta
--   [3] tombstones
-- ARGV
--   [1] ttl: milliseconds until the tombstones expire
-- Reply: 1 if the semaphore existed, else 0.
-- Each waiter that takes a tombstone puts it back for the next one (classic_pass_on). There are eight, so that a waiter
-- that dies in between does not keep the others waiting.
function entry.classic_destroy(keys, arguments)
  local tombstones_key = keys[3]
  local existed = redis.call('DEL', keys[1], keys[2])
  redis.call('DEL', tombstones_key)
  redis.call('LPUSH', tombstones_key, '1', '1', '1', '1', '1', '1', '1', '1')
  redis.call('PEXPIRE', tombstones_key, arguments[1])
  if existed > 0 then return 1 end
  return 0
end

-- Puts a tombstone back for the next waiter, unless the semaphore has been created again.
-- KEYS
--   [1] tombstones
--   [2] meta
-- ARGV
--   [1] ttl: milliseconds until the tombstones expire
-- Reply: 1 if it was put back, else 0.
-- Bounded: one element.
function entry.classic_pass_on(keys, arguments)
  local tombstones_key = keys[1]
  if redis.call('EXISTS', keys[2]) == 1 then return 0 end
  redis.call('LPUSH', tombstones_key, '1')
  redis.call('PEXPIRE', tombstones_key, arguments[1])
  return 1
end

-- Returns a permit to the end of the list that it was taken from, once for each ID however often this is called.
-- KEYS
--   [1] permits
--   [2] marker: string that exists if the permit of this ID has been returned
-- ARGV
--   [1] permit: the element that was taken
--   [2] ttl: seconds until the marker expires
-- Reply: 1 if this call returned it, 0 if an earlier one did.
-- Refuses with the error WRONGTYPE if the key of the permits is not a list.
-- Bounded: one element.
function entry.classic_give_back(keys, arguments)
  local permits_key = keys[1]
  check_permits_key(permits_key)
  if not redis.call('SET', keys[2], '1', 'NX', 'EX', arguments[2]) then return 0 end
  redis.call('RPUSH', permits_key, arguments[1])
  return 1
end
