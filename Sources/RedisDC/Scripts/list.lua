-- Lists a part of the resources of the partition. Needs no session and changes nothing.
-- KEYS: state, index, sessions
-- ARGV
--   [1] cursor: '0' to begin
-- Reply: {next cursor, '0' at the end, now in microseconds, number of living sessions,
--   {NAME, kind, limit, free, waiting, tick of the first waiter or '', …}}.
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local page = call('HSCAN', state, ARGV[1], 'MATCH', RESOURCE_FIELD .. '*', 'COUNT', '200')
local next_cursor, fields = page[1], page[2]
local rows = {}
for i = 1, #fields, 2 do
  local name = string.sub(fields[i], #RESOURCE_FIELD + 1)
  local kind, _, waiting, free, _, _, limit = decode(RESOURCE, fields[i + 1])
  local first_tick = ''
  if waiting > 0 then
    local from, to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
    local line = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1')[1]
    -- The tick follows the zero byte and the priority.
    if line then first_tick = decode(TICK, string.sub(line, #name + 4)) end
  end
  for _, value in ipairs({name, kind, limit, free, waiting, first_tick}) do rows[#rows + 1] = value end
end
return {next_cursor, now, call('ZCOUNT', sessions, '(' .. format('%d', now), '+inf'), rows}
