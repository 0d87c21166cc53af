-- Remembers the id of a put, in the step that stores its item.
-- ARGV
--   [9] id
call('ZADD', put_ids, format('%d', tick), ARGV[9])
call('ZREMRANGEBYRANK', put_ids, '0', -MAX_PUT_IDS - 1)
call('PEXPIRE', put_ids, PUT_ID_LIFETIME)
