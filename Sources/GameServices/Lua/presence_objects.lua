-- The objects of a presence bucket and the clients that own them: the operations that processes send in batches, and
-- the changes of objects that are logged and published.

-- The changes that a script makes.
local Edit = record {
  also = {
    'tag',        -- of all of them, 8 random bytes
    'logged',     -- list of the changes, as elements of the log
    'published',  -- the same list for the channel: each change after its length in 4 bytes
  },
}

-- A batch of operations.
local Batch = record {
  format = '<c16d',
  'session',
  'number',
}

-- Operations: a letter, then the record of what it needs.
local CONNECT, DISCONNECT, PUT, UPDATE = 'c', 'd', 'p', 'u'

-- The connection of a client, with which every operation except an update begins. A connect and a disconnect have
-- nothing else.
local Connection = record {
  format = '<Hc0Hc0c8',
  'user',
  'client',
  'token',
  next = 'rest_at',
}

-- The rest of a put. Key and value follow.
local PutDetails = record {
  format = '<c1I4BH',
  'scope',     -- owner of the object: c the client, u the user
  'grace',     -- ms
  'only_new',  -- 1 to refuse an object that exists
  'key_size',  -- bytes of the key
  next = 'key_at',
}
-- The scope of an object that belongs to the user.
local USER_SCOPE = 'u'

-- An update, which needs no connection. Key and value follow.
local UpdateDetails = record {
  format = '<dH',
  'version',   -- that the object must have, or -1 for any
  'key_size',  -- bytes of the key
  next = 'key_at',
}

-- The rest of a removal. The key follows.
local RemoveDetails = record {
  format = '<H',
  'key_size',  -- bytes of the key
  next = 'key_at',
}

-- Results, each with a version: of the change, or of the object that prevented it.
local DONE, SUPERSEDED, TAKEN, CHANGED = 'k', 'x', 't', 'm'

-- Kinds of changes.
local PUT_CHANGE, END_CHANGE = 'p', 'e'
-- Why an object ended.
local REMOVED, OWNER_GONE, PROCESS_DIED = 'r', 'g', 'd'

-- Collects a change: its kind; then for a put: 1 for a new object, owner, key, value; for an end: the reason, owner,
-- key. Its element of the log begins with the tag.
local function append_change(bucket, edit, change)
  change = edit.tag .. change
  bucket.version = bucket.version + 1
  bucket.bytes = bucket.bytes + #change
  edit.logged[#edit.logged + 1] = change
  edit.published[#edit.published + 1] = struct.pack('<I4', #change)
  edit.published[#edit.published + 1] = change
end

-- Returns the owner and the key as a change contains them, each after its length.
local function pack_owner_and_key(owner, key)
  return struct.pack('<Hc0Hc0', #owner, owner, #key, key)
end

-- Returns the member of the index that lists an object of an owner.
local function make_grace_member(owner, grace, key)
  return 'o' .. owner .. '\0' .. struct.pack(Grace.format, grace) .. key
end

-- Stores the changes of a script in the log, drops the oldest ones, and publishes the changes: the position before,
-- then each change after its length. The caller stores the record of the bucket (store_bucket).
local function publish_changes(bucket, edit, channel, limits)
  local max = Bounds.read(limits)
  local before = struct.pack(Position.format, bucket.epoch, bucket.version - #edit.logged, bucket.tag)
  -- At most a few hundred: the operations are bounded.
  redis.call('RPUSH', bucket.log, unpack(edit.logged))
  bucket.tag = edit.tag
  -- The element of the current version is never dropped.
  while bucket.first < bucket.version
    and (bucket.version - bucket.first >= max.count or bucket.bytes > max.bytes) do
    bucket.bytes = bucket.bytes - #redis.call('LPOP', bucket.log)
    bucket.first = bucket.first + 1
  end
  redis.call('PUBLISH', channel, before .. table.concat(edit.published))
end

-- Reads the object under a key. Without one, version and grace are 0.
local function read_object(bucket, key)
  local object = Object.new({version = 0, grace = 0})
  local stored = redis.call('HGET', bucket.state, 'k' .. key)
  if stored then
    Object.read_into(object, stored)
    object.exists = true
    object.owner = string.sub(stored, Object.size + 1, Object.size + object.owner_size)
  end
  return object
end

-- Stores an object with the version of the last change.
local function store_object(bucket, key, grace, owner, value)
  redis.call('HSET', bucket.state, 'k' .. key,
    struct.pack(Object.format, bucket.version, grace, #owner) .. owner .. value)
end

-- Ends an object.
local function end_object(bucket, edit, key, owner, grace, reason)
  redis.call('HDEL', bucket.state, 'k' .. key)
  redis.call('ZREM', bucket.index, 'k' .. key, make_grace_member(owner, grace, key))
  append_change(bucket, edit, END_CHANGE .. reason .. pack_owner_and_key(owner, key))
end

-- Stores when the next object of an owner that is gone since `gone` ends: `next_member` of the index lists the object.
-- Without an object, it deletes the owner. Returns whether the owner has an object.
local function schedule_end(bucket, owner, gone, next_member)
  if not next_member then
    redis.call('HDEL', bucket.state, owner)
    redis.call('ZREM', bucket.due, owner)
    return false
  end
  local next_object = Grace.read(next_member, #owner + 3)
  redis.call('ZADD', bucket.due, gone + next_object.grace, owner)
  return true
end

-- Ends a client's connection at `gone`, in ms; 0: its session has died, and its objects end without a grace period.
local function end_connection(bucket, owner, session_id, token, gone)
  local user = string.match(owner, '^c(%Z*)')
  redis.call('ZREM', bucket.index, 's' .. session_id .. '\0' .. owner, 'u' .. user .. '\0' .. owner)
  local of_client = 'o' .. owner .. '\0'
  local client_remains = schedule_end(bucket, owner, gone, list_members(bucket.index, of_client, 1)[1])
  if client_remains then
    local client = Client.new({session = session_id, token = token, gone = gone})
    redis.call('HSET', bucket.state, owner, Client.write(client))
  end
  local user_field = 'u' .. user
  local clients_of_user = user_field .. '\0'
  local others = list_members(bucket.index, clients_of_user, 1)
  if #others == 0 then
    local of_user = 'o' .. clients_of_user
    local user_remains = schedule_end(bucket, user_field, gone, list_members(bucket.index, of_user, 1)[1])
    if user_remains then redis.call('HSET', bucket.state, user_field, struct.pack(User.format, gone)) end
  end
end

-- Returns the field of a connection's client, or nil if the connection has ended, is that of another session, or was
-- replaced by a newer one.
local function find_owner(bucket, session_id, connection)
  local owner = 'c' .. connection.user .. '\0' .. connection.client
  local stored = redis.call('HGET', bucket.state, owner)
  if not stored then return nil end
  local client = Client.read(stored)
  if client.session == session_id and client.token == connection.token and client.gone == CONNECTED then
    return owner
  end
  return nil
end

-- Connects a client. This always succeeds.
local function connect_client(bucket, session_id, operation)
  local connection = Connection.read(operation, 2)
  local user_field = 'u' .. connection.user
  local owner = 'c' .. connection.user .. '\0' .. connection.client
  local former = redis.call('HGET', bucket.state, owner)
  if former then
    -- The previous connection, of this process or of another one, ends without changes.
    local client = Client.read(former)
    redis.call('ZREM', bucket.index, 's' .. client.session .. '\0' .. owner)
  end
  local client = Client.new({session = session_id, token = connection.token, gone = CONNECTED})
  redis.call('HSET', bucket.state, owner, Client.write(client))
  redis.call('HDEL', bucket.state, user_field)
  redis.call('ZADD', bucket.index, 0, 's' .. session_id .. '\0' .. owner, 0, user_field .. '\0' .. owner)
  redis.call('ZREM', bucket.due, owner, user_field)
end

-- Disconnects a client. Returns the result.
local function disconnect_client(bucket, session_id, now, operation)
  local connection = Connection.read(operation, 2)
  local owner = find_owner(bucket, session_id, connection)
  if not owner then return SUPERSEDED end
  end_connection(bucket, owner, session_id, connection.token, now)
  return DONE
end

-- Replaces the value of an object of any owner. Returns the result and its version.
local function update_object(bucket, edit, operation)
  local update = UpdateDetails.read(operation, 2)
  local key = string.sub(operation, update.key_at, update.key_at + update.key_size - 1)
  local object = read_object(bucket, key)
  if not object.exists or (update.version >= 0 and update.version ~= object.version) then
    return CHANGED, object.version
  end
  local value = string.sub(operation, update.key_at + update.key_size)
  append_change(bucket, edit, PUT_CHANGE .. '\0' .. pack_owner_and_key(object.owner, key) .. value)
  store_object(bucket, key, object.grace, object.owner, value)
  return DONE, bucket.version
end

-- Creates or replaces an object. Returns the result and its version.
local function put_object(bucket, edit, session_id, operation)
  local connection = Connection.read(operation, 2)
  local put = PutDetails.read(operation, connection.rest_at)
  local owner = find_owner(bucket, session_id, connection)
  if not owner then return SUPERSEDED, 0 end
  local key = string.sub(operation, put.key_at, put.key_at + put.key_size - 1)
  local object = read_object(bucket, key)
  if object.exists and (string.match(object.owner, '^.(%Z*)') ~= connection.user or put.only_new == 1) then
    return TAKEN, object.version
  end
  if put.scope == USER_SCOPE then owner = 'u' .. connection.user end
  local value = string.sub(operation, put.key_at + put.key_size)
  append_change(bucket, edit,
    PUT_CHANGE .. (object.exists and '\0' or '\1') .. pack_owner_and_key(owner, key) .. value)
  store_object(bucket, key, put.grace, owner, value)
  if object.owner ~= owner or object.grace ~= put.grace then
    if object.exists then redis.call('ZREM', bucket.index, make_grace_member(object.owner, object.grace, key)) end
    redis.call('ZADD', bucket.index, 0, make_grace_member(owner, put.grace, key), 0, 'k' .. key)
  end
  return DONE, bucket.version
end

-- Removes an object of the user. Returns the result and its version.
local function remove_object(bucket, edit, session_id, operation)
  local connection = Connection.read(operation, 2)
  local removal = RemoveDetails.read(operation, connection.rest_at)
  local owner = find_owner(bucket, session_id, connection)
  if not owner then return SUPERSEDED, 0 end
  local key = string.sub(operation, removal.key_at, removal.key_at + removal.key_size - 1)
  local object = read_object(bucket, key)
  if not object.exists then return CHANGED, 0 end
  if string.match(object.owner, '^.(%Z*)') ~= connection.user then return TAKEN, object.version end
  end_object(bucket, edit, key, object.owner, object.grace, REMOVED)
  return DONE, bucket.version
end

-- Carries out an operation. Returns the result and its version.
local function run_operation(bucket, edit, session_id, now, operation)
  local kind = string.sub(operation, 1, 1)
  if kind == CONNECT then
    connect_client(bucket, session_id, operation)
    return DONE, bucket.version
  elseif kind == DISCONNECT then
    local result = disconnect_client(bucket, session_id, now, operation)
    return result, bucket.version
  elseif kind == UPDATE then
    return update_object(bucket, edit, operation)
  elseif kind == PUT then
    return put_object(bucket, edit, session_id, operation)
  end
  return remove_object(bucket, edit, session_id, operation)
end

-- Carries out the operations of a batch, and stores its number with the reply. Returns the reply.
local function run_batch(bucket, session, session_field, batch, now, keys, arguments)
  local edit = Edit.new({tag = arguments[2], logged = {}, published = {}})
  local results = {}
  for i = 5, #arguments do
    local result, version = run_operation(bucket, edit, batch.session, now, arguments[i])
    results[#results + 1] = struct.pack('<c1d', result, version)
  end
  local reply = table.concat(results)
  session.last_batch = batch.number
  redis.call('HSET', bucket.state, session_field, Session.write(session) .. reply)
  if #edit.logged > 0 then publish_changes(bucket, edit, keys[5], arguments[3]) end
  return reply, #edit.logged
end

-- Carries out a batch of operations of a session, once.
--
-- KEYS[1] state [2] index [3] due [4] log [5] changes: the bucket's
-- ARGV[1] empty
--     [2] tag: of the changes that this script makes, 8 random bytes
--     [3] limits of the log (Bounds)
--     [4] the session and the number of the batch (Batch)
--     [5...] the operations: a letter, then what it needs: c and d Connection; p Connection, PutDetails, key, value;
--         u UpdateDetails, key, value; r Connection, RemoveDetails, key
-- Reply: {'ok', the results, each with its version of 8 bytes}. {'late'}: a later batch has been carried out. {'lost'}:
--     the session has ended. {'rolled back', number of the last batch that Redis has}: it has lost a later one.
function entry.presence_apply(keys, arguments)
  local batch = Batch.read(arguments[4])
  local session_field = 's' .. batch.session
  local now = read_milliseconds()
  local bucket = open_bucket(keys[1], keys[2], keys[3], keys[4])
  if not bucket.exists then return {'lost'} end
  local session = read_session(bucket, session_field)
  if not session.text then return {'lost'} end
  -- The reply to this batch was lost.
  if session.last_batch == batch.number then return {'ok', string.sub(session.text, Session.size + 1)} end
  if session.last_batch > batch.number then return {'late'} end
  -- Redis has lost an earlier batch.
  if session.last_batch < batch.number - 1 then return {'rolled back', session.last_batch} end
  if not is_in_use(bucket, session, session_field, now) then return {'lost'} end
  local reply, count = run_batch(bucket, session, session_field, batch, now, keys, arguments)
  if count > 0 then store_bucket(bucket) end
  return {'ok', reply}
end

-- Begins a new log after a version. Changes that others were told of under the versions up to it are lost, and no other
-- change must have their versions: an update that expects one of them would replace what it has not seen.
local function skip_versions(bucket, version, tag)
  -- The new element first: an empty key would disappear.
  redis.call('RPUSH', bucket.log, tag)
  redis.call('LTRIM', bucket.log, -1, -1)
  bucket.version, bucket.tag, bucket.first, bucket.bytes = version, tag, version, TAG_SIZE
end

-- Repeats a batch that Redis has confirmed and lost, once. The log begins anew after the versions that its session has
-- seen, so that readers take a snapshot.
--
-- KEYS[1] state [2] index [3] due [4] log [5] changes: the bucket's
-- ARGV[1] the highest version that the session has seen
--     [2...] as for presence_apply
-- Reply: as of presence_apply
-- Bounded: as presence_apply.
function entry.presence_repeat(keys, arguments)
  local batch = Batch.read(arguments[4])
  local session_field = 's' .. batch.session
  local now = read_milliseconds()
  local seen = tonumber(arguments[1])
  local bucket = open_bucket(keys[1], keys[2], keys[3], keys[4])
  if not bucket.exists then return {'lost'} end
  local session = read_session(bucket, session_field)
  if not session.text then return {'lost'} end
  if session.last_batch == batch.number then return {'ok', string.sub(session.text, Session.size + 1)} end
  if session.last_batch > batch.number then return {'late'} end
  if session.last_batch < batch.number - 1 then return {'rolled back', session.last_batch} end
  if not is_in_use(bucket, session, session_field, now) then return {'lost'} end
  if bucket.version < seen then skip_versions(bucket, seen, arguments[2]) end
  local reply = run_batch(bucket, session, session_field, batch, now, keys, arguments)
  store_bucket(bucket)
  return {'ok', reply}
end
