-- Prepares to read messages without acknowledging anything. Changes nothing. Followed by mail_page and mail_reply.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] number of partitions  [2] index after which to read, or empty: from the first message  [3] maximum number of
--     messages  [4] maximum number of bytes, but always one message
-- Reply: {'ok', POSITION, elements…} as in mail_listen, or a refusal.
-- epoch, index and tag of the message before the first one, ms now
local POSITION, HEADER_SIZE = '<c8dc8d', 2
local mail, max_messages, max_bytes = KEYS[3], tonumber(ARGV[3]), tonumber(ARGV[4])
local b, refusal = open(KEYS[2], mail, tonumber(ARGV[1]), NO_TAG)
if not b then return refusal end
local index = math.max(tonumber(ARGV[2]) or b.from, b.from)
local reply = {'ok', pack(POSITION, b.epoch, index, index == b.from and b.from_tag or NO_TAG, now)}
local at, stop = index - b.from, b.last - b.from
