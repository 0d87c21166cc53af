-- Reads messages without acknowledging anything. Changes nothing.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] partitions  [2] any 8 bytes  [3] index after which to read, or empty: from the first message  [4] maximum
--     number of messages  [5] maximum number of bytes, but always one message
-- Reply: {'ok', epoch, index, tag, now, messages…} as in mail_listen, or a refusal.
local HEADER_SIZE = 5
local b, foreign = open(KEYS[2], KEYS[3])
if not b then return {'foreign', foreign} end
local index = math.max(tonumber(ARGV[3]) or b.from, b.from)
local tag = index == b.from and b.from_tag or NO_TAG
local reply = {'ok', b.epoch, format('%.0f', index), tag, format('%.0f', now)}
local max_messages, max_bytes, size, at = tonumber(ARGV[4]), tonumber(ARGV[5]), 0, index - b.from
local average = math.max(1, (b.sum - b.from_sum - b.hollow) / math.max(1, b.last - b.from))
while at < b.last - b.from and max_messages > 0 and size < max_bytes do
  local n = math.max(1, math.min(max_messages, math.floor((max_bytes - size) / average), 1000))
  for _, element in ipairs(call('LRANGE', b.mail, at, at + n - 1)) do
    size = size + #element
    if size > max_bytes and #reply > HEADER_SIZE then break end
    reply[#reply + 1] = element
    at, max_messages = at + 1, max_messages - 1
  end
end
return reply
