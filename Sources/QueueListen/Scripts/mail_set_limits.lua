-- Gives a mailbox limits of its own, or takes them away.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] partitions  [2] epoch for a new mailbox  [3] the eight limits of mail_limits as words, or empty
-- Reply: {'ok'}, or a refusal.
local b, foreign = open(KEYS[2], KEYS[3])
if not b then return {'foreign', foreign} end
-- With the next use the time to live is set anew.
b.due = 0
call('HSET', KEYS[2], 'm', pack('<c8dc8dc8ddddd', b.epoch, b.last, b.tag, b.from, b.from_tag, b.sum, b.from_sum, b.hollow,
  b.keyed, b.due))
if not partitions then call('HSET', KEYS[1], 'partitions', ARGV[1]) end
call('PERSIST', KEYS[2])
call('PERSIST', KEYS[3])
if ARGV[3] == '' then call('HDEL', KEYS[2], 'l') else call('HSET', KEYS[2], 'l', ARGV[3]) end
if b.is_new then
  -- Nobody who waited for its predecessor is among its waiters, and no send will see that it is new.
  call('HDEL', KEYS[2], 'd')
  -- ':box:' is as long as ':meta'.
  local name = string.sub(KEYS[2], #KEYS[1] + 1)
  try('PUBLISH', string.sub(KEYS[1], 1, -5) .. 'wake:all', pack('<Hc0H', #name, name, 0))
end
return {'ok'}
