-- Guarded keys: keys of applications that only the holder with the highest fence changes. A key beside each one, in the
-- same slot of a cluster, keeps the highest fence that has used it, a space, and the name of the lock.

-- How long the fence of a key is kept after its last use: 7 days, in milliseconds.
local GUARD_LIFETIME = '604800000'

-- Refuses a fence that is lower than one that has used the key, and that of another lock. Keeps it otherwise.
local function pass_guard(guard_key, fence, name)
  local kept = redis.call('GET', guard_key)
  if kept then
    local space = string.find(kept, ' ', 1, true)
    if not space or string.sub(kept, space + 1) ~= name then refuse({'other', kept}) end
    if tonumber(string.sub(kept, 1, space - 1)) > tonumber(fence) then refuse({'late', kept}) end
  end
  redis.call('SET', guard_key, fence .. ' ' .. name, 'PX', GUARD_LIFETIME)
end

-- Sets a guarded key, or deletes it.
-- KEYS
--   [1] key: the guarded key
--   [2] guard: its fence
-- ARGV
--   [1] fence: that of the holder
--   [2] name: of the lock
--   [3] action: set, or delete
--   [4] value: of set
--   [5] ttl: of set: milliseconds until the key expires; empty for a key that does not expire
-- Reply: {'ok'}; {'late', kept} for a fence that is lower than the kept one; {'other', kept} if the key belongs to
-- another lock. Then nothing is changed.
-- Bounded: one key.
function entry.guarded_write(keys, arguments)
  local key, guard_key = keys[1], keys[2]
  local fence, name, action, value, ttl = arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]
  pass_guard(guard_key, fence, name)
  if action == 'delete' then
    redis.call('DEL', key)
  elseif ttl ~= '' then
    redis.call('SET', key, value, 'PX', ttl)
  else
    redis.call('SET', key, value)
  end
  return {'ok'}
end

-- Reads a guarded key. Holders with lower fences cannot change it from now on.
-- KEYS, ARGV [1] and [2]: as guarded_write
-- Reply: {'ok', value or false}, or as guarded_write.
-- Bounded: one key.
function entry.guarded_read(keys, arguments)
  local key, guard_key = keys[1], keys[2]
  local fence, name = arguments[1], arguments[2]
  pass_guard(guard_key, fence, name)
  local value = redis.call('GET', key)
  return {'ok', value}
end
