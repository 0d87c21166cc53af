-- Reads messages without acknowledging anything. Changes nothing.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] partitions  [2] any 8 bytes  [3] index after which to read, or empty: from the first  [4] most messages
--     [5] most bytes, but always one message
-- Reply: {'ok', epoch, index, tag, now, messages…} as mail_listen, or a refusal.
local b, foreign = open(KEYS[2], KEYS[3])
if not b then return {'foreign', foreign} end
local index = math.max(tonumber(ARGV[3]) or b.from, b.from)
local tag = index == b.from and b.from_tag or unknown
local reply = {'ok', b.epoch, format('%.0f', index), tag, format('%.0f', now)}
local most, most_bytes, size, at = tonumber(ARGV[4]), tonumber(ARGV[5]), 0, index - b.from
local average = math.max(1, (b.sum - b.from_sum - b.hollow) / math.max(1, b.last - b.from))
while at < b.last - b.from and most > 0 and size < most_bytes do
  local n = math.max(1, math.min(most, math.floor((most_bytes - size) / average), 1000))
  for _, element in ipairs(call('LRANGE', b.mail, at, at + n - 1)) do
    size = size + #element
    if size > most_bytes and #reply > 5 then break end
    reply[#reply + 1] = element
    at, most = at + 1, most - 1
  end
end
return reply
