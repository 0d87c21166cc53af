-- Lists the claims of the session, in pages.
-- ARGV
--   [6] cursor: last line of the page before, or empty for the first page
--   [7] count: maximum number of claims in one page
-- Reply: {'ok', cursor, empty after the last page, {REQ, claim_state, tick, count, NAME, …}}, or a refusal.
local cursor, page_size = ARGV[6], ARGV[7]
local from = cursor == '' and '[' .. CLAIM_LINE .. sid .. ':' or '(' .. cursor
local lines = call('ZRANGEBYLEX', index, from, '(' .. CLAIM_LINE .. sid .. ';', 'LIMIT', 0, page_size)
local page = {}
for _, line in ipairs(lines) do
  local claim = call('HGET', state, CLAIM_FIELD .. string.sub(line, 2))
  if claim and claim ~= ENDED then
    local claim_state, _, _, count, claim_tick, name_at = decode(CLAIM, claim)
    -- REQ follows CLAIM_LINE, SID and a colon.
    page[#page + 1] = string.sub(line, #sid + 3)
    page[#page + 1] = claim_state
    page[#page + 1] = format('%.0f', claim_tick)
    page[#page + 1] = format('%.0f', count)
    -- Up to the note.
    page[#page + 1] = string.match(claim, '^%Z+', name_at)
  end
end
reply = {'ok', #lines == tonumber(page_size) and lines[#lines] or '', page}
