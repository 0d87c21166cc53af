-- Shows a part of the resources of the partition. Needs no session and changes nothing.
-- KEYS as in engine_head
-- ARGV[1] cursor, '0' to begin
-- Reply: {next cursor, '0' at the end, microseconds now, living sessions, {NAME, kind, limit, free, waiting, tick of the first
--     waiter or '', …}}.
local book, index, sessions = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local found = redis.call('HSCAN', book, ARGV[1], 'MATCH', 't:*', 'COUNT', 200)
local rows = {}
for i = 1, #found[2], 2 do
  local name = string.sub(found[2][i], 3)
  local kind, _, _, limit, free, waiting = struct.unpack('<c1c1dddd', found[2][i + 1])
  local first = ''
  if waiting > 0 then
    local line = redis.call('ZRANGEBYLEX', index, '[q' .. name .. '\0', '(q' .. name .. '\1', 'LIMIT', 0, 1)[1]
    first = line and string.format('%.0f', struct.unpack('>I8', string.sub(line, #name + 4))) or ''
  end
  for _, value in ipairs({name, kind, limit, free, waiting}) do
    rows[#rows + 1] = type(value) == 'number' and string.format('%.0f', value) or value
  end
  rows[#rows + 1] = first
end
return {found[1], now, redis.call('ZCOUNT', sessions, '(' .. now, '+inf'), rows}
