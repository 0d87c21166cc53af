-- Reads a mailbox, checks it, and repairs it after tampering. For the scripts that use one mailbox. What is repaired is
-- written by the operation if it writes at all.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] TARGET, then the request of the operation

-- number of partitions of the namespace; an epoch in case the mailbox is created, 8 random bytes
local TARGET = '<Hc8'
local meta, box, mail = KEYS[1], KEYS[2], KEYS[3]
local partitions, new_epoch, request_at = unpacked(TARGET, ARGV[1])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local state, count = try('HGET', box, 'm'), try('LLEN', mail)
-- is_new: the mailbox has a new epoch. is_partition_new: meta must be written at the first use of the partition.
local is_new, is_partition_new = not state, false
-- The fields of STATE, and what follows them.
local its_partitions, epoch, last, last_tag, from, from_tag, last_sum, from_sum, hollow, keyed, due, own_size, rest
if state then
  if state.err then return {'foreign', box} end
  its_partitions, epoch, last, last_tag, from, from_tag, last_sum, from_sum, hollow, keyed, due, own_size, rest =
    unpacked(STATE, state)
  if its_partitions ~= partitions then return {'partitions', format('%d', its_partitions)} end
  rest = rest <= #state and sub(state, rest) or ''
else
  its_partitions = try('HGET', meta, 'partitions')
  if not its_partitions then
    is_partition_new = true
  elseif type(its_partitions) == 'table' then
    return {'foreign', meta}
  elseif its_partitions ~= partitions .. LAYOUT then
    return {'partitions', its_partitions}
  end
  epoch, last, last_tag, from, from_tag, last_sum, from_sum = new_epoch, 0, NO_TAG, 0, NO_TAG, 0, 0
  hollow, keyed, due, own_size, rest = 0, 0, 0, 0, ''
end
if count ~= 0 then
  if type(count) == 'table' then return {'foreign', mail} end
  local tail = call('LINDEX', mail, '-2')
  if count % 2 == 1 or #tail ~= HEAD_SIZE then return {'foreign', mail} end
  local kind, index, sum, sent, tag = unpacked(HEAD, tail)
  if count ~= 2 * (last - from) or index ~= last or tag ~= last_tag then
    -- The list does not match the state. Its messages are kept, under a new epoch: every cursor is answered with 'reset'.
    local first = call('LRANGE', mail, '0', '1')
    if #first[1] ~= HEAD_SIZE then return {'foreign', mail} end
    local first_kind, first_index, first_sum = unpacked(HEAD_TO_SUM, first[1])
    epoch, last, last_tag, last_sum, is_new = new_epoch, index, tag, sum, true
    from, from_tag, from_sum, hollow, due = index - count / 2, NO_TAG, first_sum - HEAD_SIZE - #first[2], 0, 0
  end
elseif last > from then
  -- Only the list was deleted: a cursor before its end is answered with 'truncated'.
  from, from_tag, from_sum, hollow = last, last_tag, last_sum, 0
end
