-- Lists a part of the resources of the partition. Needs no session and changes nothing.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] cursor: '0' to begin
-- Reply: {next cursor, '0' at the end, now in microseconds, number of living sessions,
--   {NAME, kind, limit, free, waiting, tick of the first waiter or '', …}, {field of a damaged record, NAME, …}}.
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
-- Resources, and claims that were set aside.
local page = call('HSCAN', state, ARGV[1], 'MATCH', '[tx]:*', 'COUNT', '200')
local next_cursor, fields = page[1], page[2]
local rows, damaged = {}, {}
for i = 1, #fields, 2 do
  local field, record = fields[i], fields[i + 1]
  local name = string.sub(field, #RESOURCE_FIELD + 1)
  if string.sub(field, 1, #ASIDE_FIELD) == ASIDE_FIELD then
    damaged[#damaged + 1] = field
    damaged[#damaged + 1] = string.match(record, '^t:(%Z+)', 28) or ''
  elseif #record < RESOURCE_SIZE then
    damaged[#damaged + 1] = field
    damaged[#damaged + 1] = name
  else
    local kind, _, waiting, free, _, _, limit = decode(RESOURCE, record)
    local first_tick = ''
    if waiting > 0 then
      local from, to = '[' .. QUEUE_LINE .. name .. '\0', '(' .. QUEUE_LINE .. name .. '\1'
      local line = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1')[1]
      -- The tick follows the zero byte and the priority.
      if line and #line >= #name + 11 then first_tick = decode(TICK, string.sub(line, #name + 4)) end
    end
    for _, value in ipairs({name, kind, limit, free, waiting, first_tick}) do rows[#rows + 1] = value end
  end
end
return {next_cursor, now, call('ZCOUNT', sessions, '(' .. format('%d', now), '+inf'), rows, damaged}
