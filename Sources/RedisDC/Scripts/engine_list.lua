-- Lists a part of the resources of the partition. Needs no session and changes nothing.
-- KEYS, fields, lines and letters as in engine_head
-- ARGV
--   [1] cursor: '0' to begin
-- Reply: {next cursor, '0' at the end, now in microseconds, number of living sessions,
--   {NAME, kind, limit, free, waiting, tick of the first waiter or '', …}}.
local RESOURCE_UP_TO_WAITING, TICK, RESOURCE_FIELD, QUEUE_LINE = '<c1c1dddd', '>I8', 't:', 'q'
local state, index, sessions = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local page = redis.call('HSCAN', state, ARGV[1], 'MATCH', RESOURCE_FIELD .. '*', 'COUNT', 200)
local next_cursor, fields = page[1], page[2]
local rows = {}
for i = 1, #fields, 2 do
  local name = string.sub(fields[i], #RESOURCE_FIELD + 1)
  local kind, _, _, limit, free, waiting = struct.unpack(RESOURCE_UP_TO_WAITING, fields[i + 1])
  local first_tick = ''
  if waiting > 0 then
    local from, to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
    local line = redis.call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, 1)[1]
    -- The tick follows the zero byte and the priority.
    if line then first_tick = string.format('%.0f', struct.unpack(TICK, string.sub(line, #name + 4))) end
  end
  for _, value in ipairs({name, kind, limit, free, waiting}) do
    rows[#rows + 1] = type(value) == 'number' and string.format('%.0f', value) or value
  end
  rows[#rows + 1] = first_tick
end
return {next_cursor, now, redis.call('ZCOUNT', sessions, '(' .. now, '+inf'), rows}
