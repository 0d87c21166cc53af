// A Redis that implements the public protocol and nothing else, as a user's own decorator does.
package import Hiredis

/// Passes every call on to a client.
package struct PlainRedis: ForwardingRedis {
    package let target: any Redis

    package init(_ redis: RedisClient) { target = redis }
}
