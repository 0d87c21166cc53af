-- Prepares to read messages without acknowledging anything. Changes nothing. Followed by mail_page and mail_reply.
-- KEYS as in mail_open
-- ARGV[1] as in mail_open  [2] index after which to read, or empty: from the first message  [3] maximum number of
--     messages  [4] maximum number of bytes, but always one message
-- Reply: {'ok', POSITION, elements…} as in mail_listen, or a refusal.
-- epoch, index and tag of the message before the first one, ms now
local POSITION, HEADER_SIZE = '<c8dc8d', 2
local max_messages, max_bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
local index = math.max(tonumber(ARGV[2]) or from, from)
local reply = {'ok', pack(POSITION, epoch, index, index == from and from_tag or NO_TAG, now)}
local at, stop = index - from, last - from
