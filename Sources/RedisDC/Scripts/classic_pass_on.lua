-- Puts a tombstone back for the next waiter, unless the semaphore has been created again.
-- KEYS
--   [1] tombstones: list that wakes the waiters of a destroyed semaphore
--   [2] meta: hash with the number of permits that the semaphore was created with
-- ARGV
--   [1] ttl: milliseconds until the tombstones expire
-- Reply: 1 if it was put back, else 0.
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('LPUSH', KEYS[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
