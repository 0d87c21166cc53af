-- Reads what a lease stands for: the item that it takes from a buffer, or what all have brought to a meeting.
-- ARGV[6] REQ of the claim
-- Reply: {'ok', {bytes, …}}, {'none'} when it is not held, or a refusal.
local field = 'c:' .. sid .. ':' .. ARGV[6]
local text = call('HGET', book, field)
local state, mode, priority, n, at, from, note = 'd', nil, nil, nil, nil, nil, nil
if text and text ~= 'd' then
  state, mode, priority, n, at, from = unpacked('<c1c1c1dd', text)
  if mode ~= 'l' then note = string.sub(text, string.find(text, '\0', from, true) or #text + 1) end
end
reply = {'none'}
if state == 'h' and mode == 'e' then
  local brought = call('HGET', book, 'e:' .. name .. note)
  if brought then reply = {'ok', cmsgpack.unpack(brought)} end
elseif state == 'h' and kind == 'i' and at > created then
  if mode == 'l' then
    local line = call('ZRANGEBYLEX', index, '[v' .. name .. '\0', '(v' .. name .. '\1', 'LIMIT', '0', '1')[1]
    if line then
      note = string.sub(line, #name + 2)
      rems[#rems + 1] = line
      sets[#sets + 1] = field
      sets[#sets + 1] = pack('<c1c1c1dd', state, 'i', priority, n, at) .. name .. note
    end
  end
  local item = note and call('HGET', book, 'v:' .. name .. note)
  if item then reply = {'ok', {item}} end
end
