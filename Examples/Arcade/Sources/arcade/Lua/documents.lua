-- JSON documents that many nodes change. A document is a hash:
--   version  1 more with each change
--   json     the value
-- The sorted set `due` of a store has the documents whose changes must still be acted on, by the second of the change.

-- Changes a document if it still has the version that was read.
--
-- KEYS[1] document
--     [2] due
-- ARGV[1] the version that was read; 0: there is no document
--     [2] JSON
--     [3] name of the document
-- Reply: 1, or 0 if it has another version.
function entry.document_replace(keys, arguments)
  local document, version = keys[1], arguments[1]
  if (redis.call('HGET', document, 'version') or '0') ~= version then return 0 end
  local time = redis.call('TIME')
  redis.call('HSET', document, 'version', version + 1, 'json', arguments[2])
  redis.call('ZADD', keys[2], time[1], arguments[3])
  return 1
end

-- Removes a document from `due`, unless it has changed again since this version was acted on.
--
-- KEYS[1] document
--     [2] due
-- ARGV[1] version
--     [2] name of the document
-- Reply: 1.
function entry.document_finish(keys, arguments)
  if redis.call('HGET', keys[1], 'version') == arguments[1] then redis.call('ZREM', keys[2], arguments[2]) end
  return 1
end

-- Returns documents that have been due for some time. document_finish removes them.
--
-- KEYS[1] due
-- ARGV[1] this time in seconds
-- Reply: up to 100 names.
function entry.document_overdue(keys, arguments)
  local now = redis.call('TIME')[1]
  return redis.call('ZRANGEBYSCORE', keys[1], '-inf', now - arguments[1], 'LIMIT', 0, 100)
end

-- Deletes a document, whatever its version.
--
-- KEYS[1] document
--     [2] due
-- ARGV[1] name of the document
-- Reply: the number of documents that were deleted: 0 or 1.
function entry.document_delete(keys, arguments)
  redis.call('ZREM', keys[2], arguments[1])
  return redis.call('DEL', keys[1])
end
