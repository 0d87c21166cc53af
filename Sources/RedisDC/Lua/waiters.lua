-- Waiters, as the lines of the index name them.

-- A waiter of a resource.
local Waiter = record {
  also = {
    'line',
    'id',         -- CLAIM
    'sid',
    'number',     -- NUMBER of the claim, as a text
    'slot_field', -- c:SID:SLOT
    -- Of a resource that groups use:
    'is_waiting', -- whether the slot waits with this claim
    'note',       -- \0 and the group of a member; else empty
    'other_line', -- the other line of a member; else nil
  },
}

-- Reads who waits from a line.
local function read_waiter(line, claim_at)
  local waiter = Waiter.new({line = line, id = string.sub(line, claim_at)})
  local colon = string.find(waiter.id, ':', 1, true)
  local second_colon = string.find(waiter.id, ':', colon + 1, true)
  waiter.sid, waiter.number = string.sub(waiter.id, 1, colon - 1), string.sub(waiter.id, second_colon + 1)
  waiter.slot_field = SLOT_FIELD .. string.sub(waiter.id, 1, second_colon - 1)
  return waiter
end
