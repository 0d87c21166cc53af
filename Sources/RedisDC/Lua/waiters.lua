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

-- Reads the waiter that a line names. Anything may follow the second colon: what is not a number names no claim.
local function read_waiter(line, claim_at)
  local waiter = Waiter.new({line = line, id = string.sub(line, claim_at)})
  local slot_id
  slot_id, waiter.sid, waiter.number = string.match(waiter.id, '^(([^:]*):[^:]*):(.*)$')
  waiter.slot_field = SLOT_FIELD .. slot_id
  return waiter
end
