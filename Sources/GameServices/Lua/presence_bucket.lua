-- A presence bucket: objects with owners, and a log of their changes. This file describes its keys and records, and has
-- the functions that all of its scripts use.
--
-- An owner is a client or a user. A client is gone when it has disconnected, and a user when the last of its clients
-- has. Then each object of the owner ends after its own grace period.
--
-- A change has a version, the previous version plus one, and the tag of the script that made it: 8 random bytes. A
-- position is an epoch, a version and its tag. If the log still has this version with this tag, the changes after the
-- position are known; otherwise Redis has lost changes, or the log has dropped them.

-- The keys of a bucket, in the order of KEYS:
--   state    hash
--            b                   the bucket (Bucket)
--            k KEY               an object (Object)
--            c USER \0 CLIENT    a client that has connected, or that is gone and still has objects (Client)
--            u USER              a user that is gone and still has objects (User)
--            s SID               a session (Session): a process that has connected clients
--   index    sorted set, all scores 0
--            k KEY               every object, for pages
--            o OWNER \0 GRACE KEY   the objects of an owner in the order of their grace periods (Grace)
--            s SID \0 OWNER      the connected clients of a session
--            u USER \0 OWNER     the connected clients of a user
--   due      sorted set by time in ms
--            s SID               when the session expires
--            OWNER               when the next object of an owner that is gone ends
--   log      list: the latest changes (append_change), one for each version from `first` to `version`
--   changes  the channel on which changes are published (publish_changes)
-- An OWNER is the field of a client (c USER \0 CLIENT) or of a user (u USER).

-- The bucket.
local Bucket = record {
  format = '<c8dc8ddd',
  'epoch',    -- 8 random bytes, which differ for each bucket that is created
  'version',  -- of the last change
  'tag',      -- of that version
  'first',    -- version of the first element of the log
  'bytes',    -- bytes of the log
  'renewed',  -- ms when the expiry of the keys was set
  -- exists: whether it exists in Redis. The others are the names of its keys.
  also = {'exists', 'state', 'index', 'due', 'log'},
}

-- An object. Its owner and its value follow.
local Object = record {
  format = '<dI4H',
  size = 14,
  'version',     -- of the change that wrote it
  'grace',       -- ms that it remains after its owner is gone
  'owner_size',  -- bytes of the owner
  also = {'exists', 'owner'},
}

-- A client that has connected, or that is gone and still has objects.
local Client = record {
  format = '<c16c8d',
  'session',  -- of the process that it has connected to
  'token',    -- of the connection, 8 random bytes
  'gone',     -- ms when it was gone, or CONNECTED
}
-- The client is connected.
local CONNECTED = -1

-- A user that is gone and still has objects.
local User = record {
  format = '<d',
  'gone',  -- ms when the last client was gone
}

-- A session. The reply to its last batch follows.
local Session = record {
  format = '<dd',
  size = 16,
  'last_batch',  -- number of its last batch
  'left',        -- ms at which it has left, or IN_USE
  also = {'text'},  -- the whole record; false if there is none
}
-- The session has not left.
local IN_USE = -1

-- The end of a member of the index that lists an object of an owner. Its key follows. Big-endian, so that the members
-- of an owner are in the order of their grace periods.
local Grace = record {
  format = '>I4',
  'grace',  -- ms
  next = 'key_at',
}

-- A place in the history of a bucket.
local Position = record {
  format = '<c8dc8',
  'epoch',
  'version',
  'tag',  -- of that version
}

-- The bounds of a reply, or of the log.
local Bounds = record {
  format = '<dd',
  'count',  -- number of elements
  'bytes',  -- of all of them
}

-- The number of bytes of a tag.
local TAG_SIZE = 8
-- RETENTION: ms after which the keys of an unused bucket expire; grace periods are shorter. RENEWAL: ms after which the
-- expiry is set again.
local RETENTION, RENEWAL = 7200000, 600000
-- A member of index and due that is never removed, so that no key disappears and returns without its expiry.
local BUCKET_GUARD = 'a'

-- Reads the bucket whose keys these are.
local function open_bucket(state, index, due, log)
  local bucket = Bucket.new({state = state, index = index, due = due, log = log})
  local stored = redis.call('HGET', state, 'b')
  if stored then
    Bucket.read_into(bucket, stored)
    -- A log of another length belongs to another bucket, or was damaged.
    bucket.exists = redis.call('LLEN', log) == bucket.version - bucket.first + 1
  end
  return bucket
end

-- Creates a bucket without its record, which the script stores at its end (store_bucket).
local function create_bucket(bucket, epoch, tag)
  redis.call('DEL', bucket.state, bucket.index, bucket.due, bucket.log)
  bucket.exists, bucket.epoch, bucket.version, bucket.tag = true, epoch, 0, tag
  bucket.first, bucket.bytes, bucket.renewed = 0, TAG_SIZE, 0
  redis.call('ZADD', bucket.index, 0, BUCKET_GUARD)
  redis.call('ZADD', bucket.due, '+inf', BUCKET_GUARD)
  -- The element of version 0 has only a tag.
  redis.call('RPUSH', bucket.log, tag)
end

-- Stores the record of a bucket.
local function store_bucket(bucket)
  redis.call('HSET', bucket.state, 'b', Bucket.write(bucket))
end

-- Sets the expiry of a bucket's keys again.
local function renew_keys(bucket, now)
  redis.call('PEXPIRE', bucket.state, RETENTION)
  redis.call('PEXPIRE', bucket.index, RETENTION)
  redis.call('PEXPIRE', bucket.due, RETENTION)
  redis.call('PEXPIRE', bucket.log, RETENTION)
  bucket.renewed = now
end

-- Returns the position of a bucket's last change in packed form.
local function pack_position(bucket)
  return struct.pack(Position.format, bucket.epoch, bucket.version, bucket.tag)
end

-- Returns up to `limit` members of the index that begin with `prefix`, which ends with a zero byte.
local function list_members(index, prefix, limit)
  return redis.call('ZRANGEBYLEX', index, '[' .. prefix, '(' .. string.sub(prefix, 1, -2) .. '\1', 'LIMIT', 0, limit)
end

-- Reads a session by its field.
local function read_session(bucket, session_field)
  local session = Session.new({text = redis.call('HGET', bucket.state, session_field)})
  if session.text then Session.read_into(session, session.text) end
  return session
end

-- Returns whether a session may be used. One that has expired is never used again, even before it is swept.
local function is_in_use(bucket, session, session_field, now)
  return session.left == IN_USE and (tonumber(redis.call('ZSCORE', bucket.due, session_field)) or 0) > now
end
