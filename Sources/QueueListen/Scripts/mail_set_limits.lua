-- Gives a mailbox limits of its own, or removes them.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] number of partitions  [2] an epoch in case the mailbox is created, 8 random bytes  [3] LIMITS, or empty
-- Reply: {'ok'}, or a refusal.
local meta, box, mail, partitions, own_limits = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1]), ARGV[3]
local b, refusal = open(box, mail, partitions, ARGV[2])
if not b then return refusal end
-- The next use sets the time to live again.
b.due = 0
call('HSET', box, 'm', pack(STATE, partitions, b.epoch, b.last, b.tag, b.from, b.from_tag, b.sum, b.from_sum, b.hollow,
  b.keyed, b.due, #own_limits) .. own_limits .. sub(b.rest, b.own_size + 1))
if is_partition_new then call('HSET', meta, 'partitions', partitions) end
call('PERSIST', box)
call('PERSIST', mail)
if b.is_new then
  -- The processes that waited for its predecessor are not registered here, and no send will notice that it is new.
  call('HDEL', box, 'd')
  -- ':box:' is as long as ':meta'.
  local name = sub(box, #meta + 1)
  try('PUBLISH', sub(meta, 1, -5) .. 'wake:all', pack(HINT_TO_READ, #name, name, 0))
end
return {'ok'}
