-- Gives a mailbox limits of its own, or removes them.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] partitions  [2] epoch for a new mailbox  [3] the eight limits of mail_limits as words, or empty
-- Reply: {'ok'}, or a refusal.
local meta, box, mail, own_limits = KEYS[1], KEYS[2], KEYS[3], ARGV[3]
local b, foreign = open(box, mail)
if not b then return {'foreign', foreign} end
-- The next use sets the time to live again.
b.due = 0
call('HSET', box, 'm', pack(STATE, b.epoch, b.last, b.tag, b.from, b.from_tag, b.sum, b.from_sum, b.hollow, b.keyed,
  b.due))
if not partitions then call('HSET', meta, 'partitions', ARGV[1]) end
call('PERSIST', box)
call('PERSIST', mail)
if own_limits == '' then call('HDEL', box, 'l') else call('HSET', box, 'l', own_limits) end
if b.is_new then
  -- The processes that waited for its predecessor are not registered here, and no send will notice that it is new.
  call('HDEL', box, 'd')
  -- ':box:' is as long as ':meta'.
  local name = string.sub(box, #meta + 1)
  try('PUBLISH', string.sub(meta, 1, -5) .. 'wake:all', pack(HINT_TO_READ, #name, name, 0))
end
return {'ok'}
