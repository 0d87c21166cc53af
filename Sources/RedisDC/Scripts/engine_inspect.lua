-- Shows a resource. Needs no session and changes nothing.
-- KEYS as in engine_head
-- ARGV[1] NAME  [2] most holders, and most waiters, to show
-- Reply: {} when there is none, or {microseconds now, kind, policy, permits, limit, free, waiting, created, signalled,
--     consumed, holders, {SID:REQ, n, tick, session's own words, …}, {the same of the waiters, in order}}.
local book, index, name = KEYS[1], KEYS[2], ARGV[1]
local text = redis.call('HGET', book, 't:' .. name)
if not text then return {} end
local resource = {struct.unpack('<c1c1ddddddd', text)}
local time = redis.call('TIME')
local reply = {string.format('%.0f', time[1] * 1000000 + time[2]), resource[1], resource[2]}
for i = 3, 9 do reply[i + 1] = string.format('%.0f', resource[i]) end
reply[11] = redis.call('ZLEXCOUNT', index, '[h' .. name .. '\0', '(h' .. name .. '\1')
for i, letter in ipairs({'h', 'q'}) do
  local shown = {}
  local from, to = '[' .. letter .. name .. '\0', '(' .. letter .. name .. '\1'
  for _, line in ipairs(redis.call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, ARGV[2])) do
    local id = string.sub(line, #name + (letter == 'h' and 3 or 12))
    local fields = redis.call('HMGET', book, 'c:' .. id, 'i:' .. string.match(id, '^(%w+):'))
    if fields[1] and fields[1] ~= 'd' then
      local _, _, _, n, at = struct.unpack('<c1c1c1dd', fields[1])
      -- What is held of a resource of the same name that was destroyed is not this one's.
      if letter == 'q' or at > resource[7] then
        shown[#shown + 1] = id
        shown[#shown + 1] = string.format('%.0f', n)
        shown[#shown + 1] = string.format('%.0f', at)
        shown[#shown + 1] = fields[2] or ''
      end
    end
  end
  reply[11 + i] = shown
end
return reply
