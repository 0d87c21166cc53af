-- Making room in mailboxes that are full: a send deletes expired messages and replaced ones, and with DROP_OLDEST the
-- oldest messages, until the new ones fit. A mailbox is a table here, with the fields of its state and of its limits.
--
-- One script deletes at most MAX_DROP_BYTES, and looks at no more than MAX_LOOKS messages. What is left to do is a
-- later script's: this one then only makes room, and replies {'again'}.

-- The maximum number of bytes that one script deletes.
local MAX_DROP_BYTES = 8388608

-- What one script may still do: messages that it looks at, and bytes that it deletes.
local Budget = record { also = {'looks', 'bytes'} }

-- Returns the number of the last message that must go so that `count` messages and `bytes` bytes go, and no more than
-- `max_bytes`; 1 is the oldest one. The search begins at the oldest message, because Redis finds an element from the
-- nearer end of the list.
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

-- Drops the oldest messages of a mailbox without collapse keys, where nothing has to be known of the messages but the
-- sum of the last one that goes. Returns whether `count` messages and `bytes` bytes have gone.
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

-- Drops messages of a mailbox one by one, and refuses the send when one of them is needed and the mailbox rejects.
-- Returns whether `count` messages and `bytes` bytes have gone.
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
  -- The numbers of messages and bytes that must go.
  local count = box.last - box.from - box.max_messages
  local bytes = box.sum - box.from_sum - box.hollow - box.max_bytes
  -- With DROP_OLDEST a probe has the room in any case.
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

-- Makes room in the mailboxes that are full. Messages that do not even fit into an empty mailbox are refused later.
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
