-- The beginning of every script of a presence bucket: the layout of the data.
--
-- A script is composed of presence_head and the files of its operation (PresenceScripts.swift). Everything is checked
-- before anything is written, because Redis does not roll back.
--
-- KEYS[1] state  hash
--           b                   the bucket (BUCKET)
--           k KEY               an object (OBJECT)
--           c USER \0 CLIENT    a client that has connected, or that is gone and still has objects (CLIENT)
--           u USER              ms at which the last client of this user was gone, while objects of the user remain
--           s SID               a session (SESSION): a process that has connected clients
-- KEYS[2] index  sorted set, all scores 0
--           k KEY               every object, for pages
--           o OWNER \0 GRACE KEY   the objects of an owner in the order of their grace periods (4 bytes, big-endian ms)
--           s SID \0 CLIENT     the connected clients of a session
--           u USER \0 CLIENT    the connected clients of a user
-- KEYS[3] due    sorted set by time in ms
--           s SID               when the session expires
--           OWNER               when the next object of an owner that is gone ends
-- KEYS[4] log    list: the latest changes (LOGGED), one for each version from `first` to `version`
-- KEYS[5] changes  the channel on which changes are published (PUBLISHED)
--
-- An OWNER is the field of a client (c USER \0 CLIENT) or of a user (u USER). It is gone when its client, or the last
-- client of its user, has disconnected. Then each of its objects ends after its own grace period.
--
-- A change has a version, one more than the version before, and the tag of the script that made it: 8 random bytes. A
-- position is an epoch, a version and its tag. It is followed by the changes of the log if the log still has its
-- version with that tag; otherwise Redis has lost changes, or the log has dropped them.
--
-- ARGV[1] new: epoch of the bucket if it does not exist; empty: it is not created
-- ARGV[2] tag: of the changes that this script makes
local call, pack, unpacked = redis.call, struct.pack, struct.unpack
local state, index, due, log, changes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
-- epoch, version, tag of that version, version of the first element of the log, bytes of the log, ms when the expiry of
-- the keys was set
local BUCKET = '<c8dc8ddd'
-- version of the last change, grace, length of the owner, owner; the value follows
local OBJECT, OBJECT_SIZE = '<dI4H', 14
-- session, token of the connection, ms when it was gone (CONNECTED: it is not)
local CLIENT, CONNECTED = '<c16c8d', -1
-- number of its last batch, ms at which it has left (IN_USE: it has not); the reply to that batch follows
local SESSION, IN_USE = '<dd', -1
-- tag, kind; then for a put: 1 for a new object, owner, key, value; for an end: the reason, owner, key
local PUT, ENDED = 'p', 'e'
-- epoch, version, tag before the changes; then each change with its length in 4 bytes
local PUBLISHED = '<c8dc8'
-- The time for which the keys of a bucket remain that no process has open. Grace periods are shorter.
local RETENTION, RENEWAL = 7200000, 600000
-- A member that stays, so that no key disappears and returns without its expiry.
local GUARD = 'a'

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local new_tag = ARGV[2]
local epoch, version, tag, first, bytes, renewed
local is_changed = false
local bucket = call('HGET', state, 'b')
if bucket then
  epoch, version, tag, first, bytes, renewed = unpacked(BUCKET, bucket)
end
-- A log of another length is that of another bucket, or was damaged.
if not bucket or call('LLEN', log) ~= version - first + 1 then
  bucket = false
  if ARGV[1] ~= '' then
    call('DEL', state, index, due, log)
    epoch, version, tag, first, bytes, renewed = ARGV[1], 0, new_tag, 0, 8, 0
    call('ZADD', index, 0, GUARD)
    call('ZADD', due, '+inf', GUARD)
    call('RPUSH', log, tag)
    bucket, is_changed = true, true
  end
end
