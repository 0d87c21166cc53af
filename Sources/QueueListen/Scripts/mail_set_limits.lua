-- Gives a mailbox limits of its own, or removes them. Followed by mail_rewind and mail_renew.
-- KEYS as in mail_open
-- ARGV[1] as in mail_open  [2] LIMITS, or empty
-- Reply: {'ok'}, or a refusal.
local own_limits = ARGV[2]
-- The next use sets the time to live again.
due = 0
call('HSET', box, 'm', pack(STATE, partitions, epoch, last, last_tag, from, from_tag, last_sum, from_sum, hollow,
  keyed, due, #own_limits) .. own_limits .. sub(rest, own_size + 1))
if is_partition_new then call('HSET', meta, 'partitions', partitions .. LAYOUT) end
call('PERSIST', box)
call('PERSIST', mail)
