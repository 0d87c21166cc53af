-- Guarded keys: keys of applications that only the holder with the highest fence changes. A key beside each one, in the
-- same slot of a cluster, keeps the highest fence that has used it, a space, and the lock.

-- The longest time between two uses of a key after which its fence is still known: 7 days, in milliseconds.
local GUARD_LIFETIME = '604800000'

-- Takes keys over for a fence: later requests with lower fences are refused. The first part of each script that changes
-- guarded keys; what changes them follows it in the same script.
--
-- KEYS: the guarded keys, and then the keys of their fences
-- ARGV: those of the script, and after them
--   [-2] fence: that of the holder
--   [-1] lock: the namespace, a colon, and the name of the lock
-- Reply: false if the keys are taken over; {'late', kept} if a key was used with a higher fence; {'other', kept} if a
-- key belongs to another lock. Then nothing is changed.
-- Bounded: 64 keys.
function entry.guard(keys, arguments)
  local total = #keys / 2
  local fence, lock = arguments[#arguments - 1], arguments[#arguments]
  for number = total + 1, #keys do
    local kept = redis.call('GET', keys[number])
    if kept then
      local space = string.find(kept, ' ', 1, true)
      if not space or string.sub(kept, space + 1) ~= lock then refuse({'other', kept}) end
      if tonumber(string.sub(kept, 1, space - 1)) > tonumber(fence) then refuse({'late', kept}) end
    end
  end
  for number = total + 1, #keys do
    redis.call('SET', keys[number], fence .. ' ' .. lock, 'PX', GUARD_LIFETIME)
  end
  return false
end
