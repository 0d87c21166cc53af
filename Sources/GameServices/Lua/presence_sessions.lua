-- The sessions of a presence bucket: a process begins one, keeps it alive by heartbeats, and ends it. A heartbeat also
-- does a bounded part of what is due.

-- Begins a session.
--
-- KEYS[1] state [2] index [3] due [4] log [5] changes: the bucket's
-- ARGV[1] epoch of the bucket if it does not exist, 8 random bytes; empty: it is not created
--     [2] tag of its first version, 8 random bytes
--     [3] the session's identifier, 16 characters
--     [4] ms until it expires without a heartbeat
-- Reply: {'ok'}, or {'lost'}: the session has begun before and has ended, or has run a batch.
function entry.presence_join(keys, arguments)
  local epoch, session_field = arguments[1], 's' .. arguments[3]
  local now = read_milliseconds()
  local bucket = open_bucket(keys[1], keys[2], keys[3], keys[4])
  if not bucket.exists and epoch ~= '' then create_bucket(bucket, epoch, arguments[2]) end
  local session = read_session(bucket, session_field)
  if session.text and session.last_batch ~= 0 then return {'lost'} end
  redis.call('ZADD', bucket.due, now + arguments[4], session_field)
  redis.call('HSET', bucket.state, session_field, struct.pack(Session.format, 0, IN_USE))
  renew_keys(bucket, now)
  store_bucket(bucket)
  return {'ok'}
end

-- Renews a session for `ttl` ms, or records that it leaves. `batch` is the number of its last answered batch. Returns
-- the status of the reply, and the number of the last batch that Redis has if that is an earlier one.
local function renew_session(bucket, session_field, batch, ttl, is_leaving, now)
  local session = read_session(bucket, session_field)
  if not session.text or not is_in_use(bucket, session, session_field, now) then return 'lost' end
  if session.last_batch < batch then return 'rolled back', session.last_batch end
  if is_leaving then
    session.left = now
    redis.call('HSET', bucket.state, session_field,
      Session.write(session) .. string.sub(session.text, Session.size + 1))
    redis.call('ZADD', bucket.due, 0, session_field)
  else
    redis.call('ZADD', bucket.due, now + ttl, session_field)
  end
  return 'ok'
end

-- Ends up to `budget` + 1 clients of a session that has expired or left, and the session after the last one. Returns
-- the rest of the budget, which may be -1.
local function end_session(bucket, session_field, budget)
  local session = read_session(bucket, session_field)
  local gone = 0
  if session.text and session.left ~= IN_USE then gone = session.left end
  -- The expiry is final, even if the clock steps back.
  redis.call('ZADD', bucket.due, 0, session_field)
  local limit = budget + 1
  local prefix = session_field .. '\0'
  local clients = list_members(bucket.index, prefix, limit)
  for _, member in ipairs(clients) do
    local owner = string.sub(member, #prefix + 1)
    local client = Client.read(redis.call('HGET', bucket.state, owner))
    end_connection(bucket, owner, string.sub(session_field, 2), client.token, gone)
  end
  if #clients < limit then
    redis.call('ZREM', bucket.due, session_field)
    redis.call('HDEL', bucket.state, session_field)
  end
  return budget - #clients
end

-- Returns the time in ms since when an owner is gone; 0: its session has died.
local function read_gone(bucket, owner)
  local stored = redis.call('HGET', bucket.state, owner)
  if not stored then return 0 end
  if string.sub(owner, 1, 1) == 'u' then
    local user = User.read(stored)
    return user.gone
  end
  local client = Client.read(stored)
  return client.gone
end

-- Ends up to `budget` + 1 objects of an owner that is gone, whose grace periods are over. Returns their number.
local function end_objects(bucket, edit, owner, budget, now)
  local gone = read_gone(bucket, owner)
  local prefix = 'o' .. owner .. '\0'
  local members = list_members(bucket.index, prefix, budget + 2)
  local reason = gone == 0 and PROCESS_DIED or OWNER_GONE
  local done = 0
  for _, member in ipairs(members) do
    local object = Grace.read(member, #prefix + 1)
    if gone + object.grace > now or budget < 0 then break end
    end_object(bucket, edit, string.sub(member, object.key_at), owner, object.grace, reason)
    budget, done = budget - 1, done + 1
  end
  schedule_end(bucket, owner, gone, members[done + 1])
  return done
end

-- Ends sessions and objects that are due, within a budget of steps, clients and objects. Returns the number of objects
-- that have ended.
local function end_what_is_due(bucket, edit, budget, now)
  local ended = 0
  while budget > 0 do
    budget = budget - 1
    local member = redis.call('ZRANGEBYSCORE', bucket.due, '-inf', now, 'LIMIT', 0, 1)[1]
    if not member then break end
    if string.sub(member, 1, 1) == 's' then
      budget = end_session(bucket, member, budget)
    else
      local count = end_objects(bucket, edit, member, budget, now)
      budget, ended = budget - count, ended + count
    end
  end
  return ended
end

-- Renews a session, and ends a bounded number of clients of expired sessions and of objects whose grace periods are
-- over. Any process may run it at any time.
--
-- KEYS[1] state [2] index [3] due [4] log [5] changes: the bucket's
-- ARGV[1] epoch of the bucket if it does not exist, 8 random bytes; empty: it is not created
--     [2] tag: of the changes that this script makes, 8 random bytes
--     [3] limits of the log (Bounds)
--     [4] the session, or empty
--     [5] number of the last batch of the session that was answered
--     [6] ms until the session expires without a heartbeat
--     [7] 'leave': the session ends, and the grace periods of its clients begin
--     [8] maximum number of clients and objects to end
-- Reply: {status, the position, ms until something is due or -1, number of objects ended}. The status is ok, lost, or
--     rolled back: Redis has lost a batch that was answered, and the number of the last one that it has follows.
--     Without a bucket, {'none'}; with a session {'lost'}.
function entry.presence_sweep(keys, arguments)
  local epoch, tag, session_id = arguments[1], arguments[2], arguments[4]
  local now = read_milliseconds()
  local bucket = open_bucket(keys[1], keys[2], keys[3], keys[4])
  if not bucket.exists then
    if epoch == '' then return {session_id == '' and 'none' or 'lost'} end
    create_bucket(bucket, epoch, tag)
  end
  local status, last_batch = 'ok', nil
  if session_id ~= '' then
    local batch, is_leaving = tonumber(arguments[5]), arguments[7] == 'leave'
    status, last_batch = renew_session(bucket, 's' .. session_id, batch, arguments[6], is_leaving, now)
  end
  -- A bucket that was just created is always renewed.
  local is_renewed = now - bucket.renewed > RENEWAL or bucket.renewed > now
  if is_renewed then renew_keys(bucket, now) end

  local edit = Edit.new({tag = tag, logged = {}, published = {}})
  local ended = end_what_is_due(bucket, edit, tonumber(arguments[8]), now)
  -- The time of the member that is due first, without the guard.
  local next_due = redis.call('ZRANGEBYSCORE', bucket.due, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if #edit.logged > 0 then publish_changes(bucket, edit, keys[5], arguments[3]) end
  if is_renewed or #edit.logged > 0 then store_bucket(bucket) end
  local wait = next_due and math.max(0, math.ceil(next_due - now)) or -1
  return {status, pack_position(bucket), wait, ended, last_batch}
end
