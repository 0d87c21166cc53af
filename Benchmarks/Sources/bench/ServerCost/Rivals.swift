// Scripts of other implementations for the same purposes, written from their documented behaviour.
import Hiredis

/// The scripts that those of the engine and the mailboxes are compared with.
enum Rivals {
    /// Deletes a key that still has the value that its owner set: the second half of the lock with `SET NX`.
    static let compareAndDelete = RedisScript(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")

    /// A reentrant lock in a hash: the owner's field counts how often it holds the lock, the key expires with the lease. The reply is
    /// nil, or the time to wait.
    static let hashLock = RedisScript(
        """
        if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
          redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
          redis.call('PEXPIRE', KEYS[1], ARGV[1])
          return nil
        end
        return redis.call('PTTL', KEYS[1])
        """)

    /// Counts the owner's field down, and at zero deletes the lock and announces that on a channel.
    static let hashUnlock = RedisScript(
        """
        if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
        local count = redis.call('HINCRBY', KEYS[1], ARGV[3], -1)
        if count > 0 then
          redis.call('PEXPIRE', KEYS[1], ARGV[2])
          return 0
        end
        redis.call('DEL', KEYS[1])
        redis.call('PUBLISH', KEYS[2], ARGV[1])
        return 1
        """)

    /// Publishes a message with an offset, and keeps it in a stream of bounded length that expires; epoch and offset are in a hash.
    static let publishWithHistory = RedisScript(
        """
        local epoch = redis.call('HGET', KEYS[2], 'e')
        if not epoch then
          epoch = ARGV[6]
          redis.call('HSET', KEYS[2], 'e', epoch)
        end
        local offset = redis.call('HINCRBY', KEYS[2], 's', 1)
        redis.call('EXPIRE', KEYS[2], ARGV[5])
        redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], offset, 'd', ARGV[1])
        redis.call('EXPIRE', KEYS[1], ARGV[3])
        redis.call('PUBLISH', ARGV[4], 'p1:' .. offset .. ':' .. epoch .. '__' .. ARGV[1])
        return {offset, epoch}
        """)
}
