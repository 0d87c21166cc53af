-- Lists the sessions of the state again, in pages, after somebody has deleted the key of the sessions: without it, dead
-- sessions would never be swept. Anyone may run it, without a session.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] cursor: 0, then that of the last reply
-- Reply: the next cursor; 0 at the end
local page = call('HSCAN', state, ARGV[1], 'MATCH', SESSION_FIELD .. '*', 'COUNT', '500')
local fields = page[2]
for i = 1, #fields, 2 do
  local expires = #fields[i + 1] == SESSION_SIZE and decode(NUMBER, fields[i + 1]) or 0
  if not (expires > 0 and expires < 2 ^ 53) then expires = 0 end
  call('ZADD', sessions, 'NX', format('%d', expires), string.sub(fields[i], 3))
end
return tonumber(page[1])
