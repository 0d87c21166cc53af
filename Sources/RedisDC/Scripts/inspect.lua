-- Describes a resource. Needs no session and changes nothing.
-- ARGV
--   [1] NAME
--   [2] limit: maximum number of holders, and of waiters, to list. At most 128 of each are listed.
--   [3] and [4], for a further page, or nothing: h for holders only or q for waiters only, and the line of the index
--       after which it begins
-- Reply: {} if the resource does not exist, {'damaged'} if its record is, or
--   {now in microseconds, kind, permits, limit, free, waiting, created,
--   signalled, consumed, number of holders, holders, waiters, last holder, last waiter}. Holders and waiters are
--   {CLAIM, count, tick, description of the session, …}, the waiters in queue order. The last ones are lines of the index
--   for [4], empty where no more can follow.
local name = ARGV[1]
local record = call('HGET', state, RESOURCE_FIELD .. name)
if not record then return {} end
if #record < RESOURCE_SIZE then return {'damaged'} end
local kind, family, waiting, free, consumed, permits, limit, created, signalled = decode(RESOURCE, record)
local time = call('TIME')
local reply = {time[1] * 1000000 + time[2], kind, permits, limit, free, waiting, created,
  kind == MUTEX and 0 or signalled, consumed}
local holders_from, holders_to = '[' .. HOLDER_LINE .. name .. '\0', '(' .. HOLDER_LINE .. name .. '\1'
local named_holder = kind == MUTEX and family == PERMITS and string.sub(record, TAIL) or ''
reply[#reply + 1] = named_holder ~= '' and 1 or call('ZLEXCOUNT', index, holders_from, holders_to)
local page_size = math.min(tonumber(ARGV[2]), 128)
for at, letter in ipairs({HOLDER_LINE, QUEUE_LINE}) do
  local claims = {}
  local from, to = '[' .. letter .. name .. '\0', '(' .. letter .. name .. '\1'
  if ARGV[3] == letter then from = '(' .. ARGV[4] end
  -- The claim follows the zero byte. In a waiter's line a priority and a tick of 8 bytes are between them.
  local claim_at = #name + (letter == HOLDER_LINE and 3 or 12)
  local is_wanted = not ARGV[3] or ARGV[3] == letter
  local ids = is_wanted and call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', page_size) or {}
  reply[at + 12] = #ids == page_size and ids[page_size] or ''
  for i = 1, #ids do ids[i] = string.sub(ids[i], claim_at) end
  if letter == HOLDER_LINE and named_holder ~= '' and is_wanted then ids = {named_holder} end
  for i = 1, #ids do
    local sid, slot = string.match(ids[i], '^(%w+):(%d+):')
    local fields = call('HMGET', state, SLOT_FIELD .. sid .. ':' .. slot, ABOUT_FIELD .. sid)
    local claim, about = fields[1], fields[2]
    if claim and string.sub(claim, 1, 1) ~= DONE then
      local _, _, count, tick = decode(CLAIM, claim)
      -- Without the holders of a destroyed resource of the same name.
      if letter == QUEUE_LINE or tick >= created then
        claims[#claims + 1] = ids[i]
        claims[#claims + 1] = count
        claims[#claims + 1] = tick
        claims[#claims + 1] = about or ''
      end
    end
  end
  reply[at + 10] = claims
end
return reply
