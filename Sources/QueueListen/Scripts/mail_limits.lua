-- The limits, for the scripts that obey them. A mailbox's own limits replace these.
-- ARGV[3] maximum number of messages  [4] maximum number of bytes  [5] ms that a message is delivered, 0: always [6]
--     when full: REJECT or DROP_OLDEST  [7] ms after which an unused mailbox is deleted, 0: never  [8] number of
--     messages kept beyond acknowledgement  [9] ms that messages are kept beyond acknowledgement  [10] ms after which
--     an unseen device is forgotten, 0: never
local MAX_MESSAGES, MAX_BYTES, MAX_AGE, WHEN_FULL, TTL, BACKLOG_COUNT, BACKLOG_AGE, DEVICE_TTL = 1, 2, 3, 4, 5, 6, 7, 8
local REJECT, DROP_OLDEST = 'r', 'd'
local limits = {ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]}
