-- Shows operators the resources of a partition. These entries need no session and change nothing.

-- The maximum numbers of holders and of waiters in one reply.
local MAX_LISTED = 128

-- Returns a page of the claims in the lines of a resource, and the last line if more may follow, or ''. `claim_at` is
-- the position of the claim in a line, `from` the lower bound of the page.
local function list_claim_ids(index, letter, name, from, claim_at, page_size)
  local ids = redis.call('ZRANGEBYLEX', index, from, after_last_line(letter, name), 'LIMIT', '0', page_size)
  local last = #ids == page_size and ids[page_size] or ''
  for i = 1, #ids do ids[i] = string.sub(ids[i], claim_at) end
  return ids, last
end

-- Returns {CLAIM, count, tick, description of the session, …} of claims whose tick is at least `since`, if that is
-- given.
local function describe_claims(state, ids, since)
  local claims = {}
  for i = 1, #ids do
    local sid, slot = string.match(ids[i], '^(%w+):(%d+):')
    local fields = redis.call('HMGET', state, SLOT_FIELD .. sid .. ':' .. slot, ABOUT_FIELD .. sid)
    local stored = fields[1]
    if stored and slot_state(stored) ~= DONE then
      local claim = Claim.read(stored)
      if not since or claim.tick >= since then
        claims[#claims + 1] = ids[i]
        claims[#claims + 1] = claim.count
        claims[#claims + 1] = claim.tick
        claims[#claims + 1] = fields[2] or ''
      end
    end
  end
  return claims
end

-- Describes a resource.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] NAME
--   [2] limit: maximum number of holders, and of waiters, to list. At most 128 of each are listed.
--   [3] and [4], for a further page, or nothing: h for holders only or q for waiters only, and the line of the index
--       after which it begins
-- Reply: {} if the resource does not exist, {'damaged'} if its record is, or
--   {now in microseconds, kind, permits, limit, free, waiting, created,
--   signalled, consumed, number of holders, holders, waiters, last holder, last waiter}. Holders and waiters are
--   {CLAIM, count, tick, description of the session, …}, the waiters in queue order. The last ones are lines of the
--   index for [4], empty where no more can follow.
function entry.inspect(keys, arguments)
  local state, index = keys[1], keys[2]
  local name, wanted, after = arguments[1], arguments[3], arguments[4]
  local stored = redis.call('HGET', state, RESOURCE_FIELD .. name)
  if not stored then return {} end
  if #stored < Resource.size then return {'damaged'} end
  local resource = Resource.read(stored)
  local now = read_time()
  local named_holder = resource.kind == MUTEX and resource.family == PERMITS and tail_of_resource(stored) or ''
  local holder_count = named_holder ~= '' and 1
    or redis.call('ZLEXCOUNT', index, first_line(HOLDER_LINE, name), after_last_line(HOLDER_LINE, name))
  local page_size = math.min(tonumber(arguments[2]), MAX_LISTED)
  local holders, waiters, last_holder, last_waiter, ids = {}, {}, '', '', nil
  if not wanted or wanted == HOLDER_LINE then
    local from = wanted and '(' .. after or first_line(HOLDER_LINE, name)
    ids, last_holder = list_claim_ids(index, HOLDER_LINE, name, from, holder_claim_at(name), page_size)
    if named_holder ~= '' then ids = {named_holder} end
    -- Without the holders of a destroyed resource of the same name.
    holders = describe_claims(state, ids, resource.created)
  end
  if not wanted or wanted == QUEUE_LINE then
    local from = wanted and '(' .. after or first_line(QUEUE_LINE, name)
    ids, last_waiter = list_claim_ids(index, QUEUE_LINE, name, from, queue_claim_at(name), page_size)
    waiters = describe_claims(state, ids, nil)
  end
  local signalled = resource.kind == MUTEX and 0 or resource.signalled
  return {now, resource.kind, resource.permits, resource.limit, resource.free, resource.waiting, resource.created,
    signalled, resource.consumed, holder_count, holders, waiters, last_holder, last_waiter}
end

-- Returns the tick of the first waiter of a resource, or '' without one.
local function read_first_tick(index, name)
  local line = redis.call('ZRANGEBYLEX', index, first_line(QUEUE_LINE, name), after_last_line(QUEUE_LINE, name),
    'LIMIT', '0', '1')[1]
  if not line or #line < #name + 11 then return '' end
  return struct.unpack(TICK_FORMAT, string.sub(line, queue_tick_at(name)))
end

-- Adds a resource to the rows of a list.
local function add_row(index, name, stored, rows)
  local resource = Resource.read(stored)
  local first_tick = ''
  if resource.waiting > 0 then first_tick = read_first_tick(index, name) end
  rows[#rows + 1] = name
  rows[#rows + 1] = resource.kind
  rows[#rows + 1] = resource.limit
  rows[#rows + 1] = resource.free
  rows[#rows + 1] = resource.waiting
  rows[#rows + 1] = first_tick
end

-- Lists the resources of the partition in pages.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] cursor: '0' to begin
-- Reply: {next cursor, '0' at the end, now in microseconds, number of living sessions,
--   {NAME, kind, limit, free, waiting, tick of the first waiter or '', …}, {field of a damaged record, NAME, …}}.
function entry.list(keys, arguments)
  local state, index, sessions = keys[1], keys[2], keys[3]
  local now = read_time()
  -- Resources, and claims that were set aside.
  local page = redis.call('HSCAN', state, arguments[1], 'MATCH', '[tx]:*', 'COUNT', '200')
  local fields = page[2]
  local rows, damaged = {}, {}
  for i = 1, #fields, 2 do
    local field, stored = fields[i], fields[i + 1]
    local name = string.sub(field, 3)
    if string.sub(field, 1, 2) == ASIDE_FIELD then
      damaged[#damaged + 1] = field
      damaged[#damaged + 1] = name_in_claim(stored) or ''
    elseif #stored < Resource.size then
      damaged[#damaged + 1] = field
      damaged[#damaged + 1] = name
    else
      add_row(index, name, stored, rows)
    end
  end
  local living = redis.call('ZCOUNT', sessions, '(' .. string.format('%d', now), '+inf')
  return {page[1], now, living, rows, damaged}
end
