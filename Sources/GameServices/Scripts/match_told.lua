-- Notes that an outcome has been sent to its players. Composed of match_head and this file.
--
-- ARGV[7] id of the outcome
-- Reply: 1 if it was not noted before.
call('ZREM', due, 'm' .. ARGV[7])
return call('HDEL', state, 'm:' .. ARGV[7])
