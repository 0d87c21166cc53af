-- Makes room in full mailboxes: a send deletes expired and replaced messages, and with DROP_OLDEST the oldest messages,
-- until the new ones fit. A mailbox is a table here, with the fields of its state and of its limits.
--
-- One script deletes at most MAX_DROP_BYTES, and reads at most MAX_LOOKS messages. If that is not enough, it only makes
-- room and replies {'again'}.

-- The maximum number of bytes that one script deletes.
local MAX_DROP_BYTES = 8388608

-- The numbers of messages that one script may still read and of bytes that it may still delete.
local Budget = record { also = {'looks', 'bytes'} }

-- Returns how many of the oldest messages must be deleted to delete at least `count` messages and `bytes` bytes; fewer
-- if these have `max_bytes`. The search begins at the oldest message, because Redis finds an element from the nearer
-- end of the list. left: number of messages.
local function find_last_to_go(box, left, count, bytes, max_bytes)
  local low, high, is_found = 1, 1, false
  while low < high or not is_found do
    local middle = is_found and math.floor((low + high) / 2) or high
    local head = HeadToSum.read(load_head(box.mail, middle - 1))
    local dropped = head.sum - box.from_sum
    if middle >= count and dropped >= bytes or dropped >= max_bytes or middle == left then
      high, is_found = middle, true
    else
      low = middle + 1
      if not is_found then high = math.min(2 * middle, left) end
    end
  end
  return high
end

-- Drops the oldest messages of a mailbox without collapse keys: only the head of the last dropped one must be read.
-- Returns whether `count` messages and `bytes` bytes were dropped.
local function drop_oldest(box, budget, left, count, bytes)
  local last = find_last_to_go(box, left, count, bytes, budget.bytes)
  local head = Head.read(load_head(box.mail, last - 1))
  local dropped = head.sum - box.from_sum
  budget.bytes = budget.bytes - dropped
  box.drop, box.from, box.from_tag, box.from_sum = last, head.index, head.tag, head.sum
  return last >= count and dropped >= bytes
end

-- Drops the first message of a mailbox, which has this size.
local function drop_first(box, head, key, size)
  box.hollow = box.hollow - (head.sum - box.from_sum - size)
  box.from, box.from_tag, box.from_sum, box.drop = head.index, head.tag, head.sum, box.drop + 1
  if key ~= '' and box.keyed > 0 then
    box.old_keys = box.old_keys or {}
    box.old_keys[#box.old_keys + 1] = key
    box.old_keys[#box.old_keys + 1] = head.index
  end
end

-- Drops messages of a mailbox one by one, and refuses the send when one of them is neither replaced nor expired and the
-- mailbox rejects. Returns whether `count` messages and `bytes` bytes were dropped.
local function drop_unneeded(box, budget, left, count, bytes, now)
  while (count > 0 or bytes > 0) and budget.looks > 0 and box.drop < left do
    local elements = redis.call('LRANGE', box.mail, string.format('%d', 2 * box.drop),
      string.format('%d', 2 * box.drop + 63))
    for i = 1, #elements, 2 do
      if count <= 0 and bytes <= 0 or budget.looks <= 0 or box.drop >= left then break end
      local head = Head.read(elements[i])
      local body = Body.read(elements[i + 1])
      local is_needed = head.kind == MESSAGE and (body.life == 0 or head.sent + body.life > now)
      if is_needed and box.when_full == REJECT then refuse({'full', box.number}) end
      local size = Head.size + #elements[i + 1]
      drop_first(box, head, body.key, size)
      count, bytes, budget.looks, budget.bytes = count - 1, bytes - size, budget.looks - 1, budget.bytes - size
    end
  end
  return count <= 0 and bytes <= 0
end

-- Makes room in a mailbox. Returns whether there is enough.
local function make_room_in(box, budget, mode, now)
  local left, has_room = box.base - box.from, true
  -- The numbers of messages and bytes that must be dropped.
  local count = box.last - box.from - box.max_messages
  local bytes = box.sum - box.from_sum - box.hollow - box.max_bytes
  -- With DROP_OLDEST there is always room for a probe.
  if box.when_full ~= DROP_OLDEST or mode ~= PROBE then
    if box.when_full == DROP_OLDEST and box.keyed == 0 and box.hollow == 0 then
      has_room = drop_oldest(box, budget, left, count, bytes)
    else
      has_room = drop_unneeded(box, budget, left, count, bytes, now)
    end
  end
  box.is_over = false
  return has_room
end

-- Makes room in the mailboxes that are full. Messages that do not fit into an empty mailbox are refused by refuse_full.
local function make_room(plan, recipients, mode, now)
  local budget = Budget.new({looks = MAX_LOOKS, bytes = MAX_DROP_BYTES})
  for number = 1, recipients do
    local box = plan.boxes[number]
    if box and box.is_over and box.last - box.base <= box.max_messages and box.sum - box.base_sum <= box.max_bytes then
      local has_room = make_room_in(box, budget, mode, now)
      if not has_room then plan.is_step = true end
    end
  end
  if plan.is_step and mode ~= PROBE then
    for number = 1, recipients do
      local box = plan.boxes[number]
      if box then
        -- The messages of this send are not stored yet.
        box.last, box.tag, box.sum, box.is_new = box.base, box.base_tag, box.base_sum, false
        plan.writes[2 * number - 1] = {}
      end
    end
  end
end

-- Refuses the send if a mailbox is still full.
local function refuse_full(boxes)
  for number, box in pairs(boxes) do
    if box.is_over then refuse({'full', number}) end
  end
end
