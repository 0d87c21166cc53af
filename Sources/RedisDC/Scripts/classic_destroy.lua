-- Destroys a classic semaphore and wakes whoever waits for it with a tombstone.
-- KEYS[1] list of permits   KEYS[2] hash with what it was created with   KEYS[3] list of tombstones
-- ARGV[1] milliseconds that the tombstones stay
-- Reply: 1 when there was something to destroy, else 0.
-- Each waiter that takes a tombstone puts it back for the next (classic_pass_on.lua); there are several, so that one
-- that dies in between does not keep the rest waiting.
local existed = redis.call('DEL', KEYS[1], KEYS[2])
redis.call('DEL', KEYS[3])
redis.call('LPUSH', KEYS[3], '1', '1', '1', '1', '1', '1', '1', '1')
redis.call('PEXPIRE', KEYS[3], ARGV[1])
if existed > 0 then return 1 end
return 0
