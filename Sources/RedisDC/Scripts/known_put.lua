-- Refuses a put whose id the buffer remembers: its item was put, and may have been taken since.
--
-- The ids of a buffer that was destroyed are older than the one of the same name.
-- ARGV, the last one: the id
-- Refusal: {'known'}
local put_tick = created and call('ZSCORE', put_ids, ARGV[#ARGV])
if put_tick and put_tick + 0 >= created then return {'known'} end
