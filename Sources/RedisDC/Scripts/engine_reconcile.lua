-- What the session holds and waits for, by pages.
-- ARGV[6] last line of the page before, or empty  [7] most of one page
-- Reply: {'ok', last line or empty when this was the last page, {REQ, state, tick, n, NAME, …}}, or a refusal.
local from = ARGV[6] == '' and '[s' .. sid .. ':' or '(' .. ARGV[6]
local lines = call('ZRANGEBYLEX', index, from, '(s' .. sid .. ';', 'LIMIT', 0, ARGV[7])
local page = {}
for _, line in ipairs(lines) do
  local text = call('HGET', book, 'c:' .. string.sub(line, 2))
  if text and text ~= 'd' then
    local state, _, _, n, at, rest = unpacked('<c1c1c1dd', text)
    page[#page + 1] = string.sub(line, #sid + 3)
    page[#page + 1] = state
    page[#page + 1] = format('%.0f', at)
    page[#page + 1] = format('%.0f', n)
    -- Without the note.
    page[#page + 1] = string.match(text, '^%Z+', rest)
  end
end
reply = {'ok', #lines == tonumber(ARGV[7]) and lines[#lines] or '', page}
