-- Puts a tombstone back for the next waiter, unless the semaphore has been created again.
-- KEYS[1] list of tombstones   KEYS[2] hash with what the semaphore was created with
-- ARGV[1] milliseconds that the tombstones stay
-- Reply: 1 when put back, else 0.
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('LPUSH', KEYS[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
