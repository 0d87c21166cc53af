-- Describes a resource. Needs no session and changes nothing.
-- KEYS, fields, lines and letters as in engine_head
-- ARGV
--   [1] NAME
--   [2] limit: maximum number of holders, and of waiters, to list
-- Reply: {} if the resource does not exist, or {now in microseconds, kind, policy, permits, limit, free, waiting,
--   created, signalled, consumed, number of holders, holders, waiters}, the last two as {SID:REQ, count, tick,
--   description of the session, …}, the waiters in queue order.
local CLAIM, RESOURCE, ENDED = '<c1c1c1dd', '<c1c1ddddddd', 'd'
local CLAIM_FIELD, RESOURCE_FIELD, ABOUT_FIELD, QUEUE_LINE, HOLDER_LINE = 'c:', 't:', 'i:', 'q', 'h'
local state, index, name = KEYS[1], KEYS[2], ARGV[1]
local record = redis.call('HGET', state, RESOURCE_FIELD .. name)
if not record then return {} end
local kind, policy, permits, limit, free, waiting, created, signalled, consumed = struct.unpack(RESOURCE, record)
local time = redis.call('TIME')
local reply = {string.format('%.0f', time[1] * 1000000 + time[2]), kind, policy}
for _, number in ipairs({permits, limit, free, waiting, created, signalled, consumed}) do
  reply[#reply + 1] = string.format('%.0f', number)
end
local holders_from, holders_to = '[' .. HOLDER_LINE .. name .. '\0', '(' .. HOLDER_LINE .. name .. '\1'
reply[#reply + 1] = redis.call('ZLEXCOUNT', index, holders_from, holders_to)
for _, letter in ipairs({HOLDER_LINE, QUEUE_LINE}) do
  local claims = {}
  local from, to = '[' .. letter .. name .. '\0', '(' .. letter .. name .. '\1'
  -- The claim's ID follows the zero byte. In a waiter's line a priority and a tick of 8 bytes are between them.
  local id_at = #name + (letter == HOLDER_LINE and 3 or 12)
  for _, line in ipairs(redis.call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, ARGV[2])) do
    local claim_id = string.sub(line, id_at)
    local sid = string.match(claim_id, '^(%w+):')
    local fields = redis.call('HMGET', state, CLAIM_FIELD .. claim_id, ABOUT_FIELD .. sid)
    local claim, about = fields[1], fields[2]
    if claim and claim ~= ENDED then
      local _, _, _, count, tick = struct.unpack(CLAIM, claim)
      -- Without the holders of a destroyed resource of the same name.
      if letter == QUEUE_LINE or tick > created then
        claims[#claims + 1] = claim_id
        claims[#claims + 1] = string.format('%.0f', count)
        claims[#claims + 1] = string.format('%.0f', tick)
        claims[#claims + 1] = about or ''
      end
    end
  end
  reply[#reply + 1] = claims
end
return reply
