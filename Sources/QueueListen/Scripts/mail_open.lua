-- A function that reads a mailbox, checks it, and repairs it after tampering. For the scripts that use one mailbox.
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Whether the script must write the number of partitions, because it is the first one in this partition.
local is_partition_new = false

-- Returns a mailbox as a table; or nil and a refusal.
local function open(box, mail, partitions, new_epoch)
  local state, count = try('HGET', box, 'm'), try('LLEN', mail)
  if type(state) == 'table' then return nil, {'foreign', box} end
  if type(count) == 'table' then return nil, {'foreign', mail} end
  local kind, index, sum, sent, tag
  if count > 0 then
    local tail = call('LINDEX', mail, '-2')
    if count % 2 == 1 or #tail ~= HEAD_SIZE then return nil, {'foreign', mail} end
    kind, index, sum, sent, tag = unpacked(HEAD, tail)
    count = count / 2
  end
  local b
  if state then
    local known, epoch, last, last_tag, from, from_tag, last_sum, from_sum, hollow, keyed, due, own_size, at =
      unpacked(STATE, state)
    if known ~= partitions then return nil, {'partitions', format('%d', known)} end
    b = {box = box, mail = mail, epoch = epoch, last = last, tag = last_tag, from = from, from_tag = from_tag,
      sum = last_sum, from_sum = from_sum, hollow = hollow, keyed = keyed, due = due, own_size = own_size, rest = '',
      is_new = false}
    if at <= #state then b.rest = sub(state, at) end
    if count == last - from and (count == 0 or index == last and tag == last_tag) then return b end
    if count == 0 then
      -- Only the list was deleted: a cursor before its end is answered with 'truncated'.
      b.from, b.from_tag, b.from_sum, b.hollow = last, last_tag, last_sum, 0
      return b
    end
  else
    local known = try('HGET', KEYS[1], 'partitions')
    if type(known) == 'table' then return nil, {'foreign', KEYS[1]} end
    if not known then is_partition_new = true elseif tonumber(known) ~= partitions then
      return nil, {'partitions', known}
    end
    b = {box = box, mail = mail, epoch = new_epoch, last = 0, tag = NO_TAG, from = 0, from_tag = NO_TAG, sum = 0,
      from_sum = 0, hollow = 0, keyed = 0, due = 0, own_size = 0, rest = '', is_new = true}
    if count == 0 then return b end
  end
  -- The list does not match the state. Its messages are kept, under a new epoch: every cursor is answered with 'reset'.
  local first = call('LRANGE', mail, '0', '1')
  if #first[1] ~= HEAD_SIZE then return nil, {'foreign', mail} end
  local first_kind, first_index, first_sum = unpacked(HEAD_TO_SUM, first[1])
  b.epoch, b.last, b.tag, b.sum, b.is_new = new_epoch, index, tag, sum, true
  b.from, b.from_tag, b.from_sum, b.hollow, b.due = index - count, NO_TAG, first_sum - HEAD_SIZE - #first[2], 0, 0
  return b
end
