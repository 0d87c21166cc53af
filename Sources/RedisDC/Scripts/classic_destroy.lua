-- Destroys a classic semaphore and wakes its waiters with tombstones.
-- KEYS
--   [1] permits: list with an element for each permit
--   [2] meta: hash with the number of permits that the semaphore was created with
--   [3] tombstones: list that wakes the waiters of a destroyed semaphore
-- ARGV
--   [1] ttl: milliseconds until the tombstones expire
-- Reply: 1 if the semaphore existed, else 0.
-- Each waiter that takes a tombstone puts it back for the next one (classic_pass_on.lua). There are eight, so that a
-- waiter that dies in between does not keep the others waiting.
local existed = redis.call('DEL', KEYS[1], KEYS[2])
redis.call('DEL', KEYS[3])
redis.call('LPUSH', KEYS[3], '1', '1', '1', '1', '1', '1', '1', '1')
redis.call('PEXPIRE', KEYS[3], ARGV[1])
if existed > 0 then return 1 end
return 0
