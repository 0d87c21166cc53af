import NIOCore
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The slots of keys and the destinations of commands")
struct HashSlotTests {
    @Test("a slot is the CRC16 of the key or of its hash tag")
    func slots() {
        #expect(HashSlot.of("123456789") == 0x31C3)
        #expect(HashSlot.of("foo") == 12182 && HashSlot.of("") == 0)
        #expect(HashSlot.of("{user1000}.following") == HashSlot.of("user1000"))
        #expect(HashSlot.of("foo{bar}{zap}") == HashSlot.of("bar"))
        #expect(HashSlot.of("foo{{bar}}zap") == HashSlot.of("{bar"))
        #expect(HashSlot.of("foo{}{bar}") != HashSlot.of("bar"))
        #expect(HashSlot.of("foo{bar") != HashSlot.of("bar"))
        #expect(HashSlot.of("naïve") == HashSlot.of(Array("naïve".utf8)))
    }

    @Test("a command goes to the slot of its first key")
    func destinations() {
        let slot = RedisCommand.Destination.slot(12182)
        #expect(RedisCommand("GET", "foo").destination == slot)
        #expect(RedisCommand("get", "foo").destination == slot)
        #expect(RedisCommand("SET", .bytes(Array("foo".utf8)), 1).destination == slot)
        #expect(RedisCommand("SET", .buffer(ByteBuffer(string: "foo")), 1).destination == slot)
        #expect(RedisCommand("GET", 7).destination == .slot(HashSlot.of("7")))
        #expect(RedisCommand("EVAL", "return 1", 1, "foo", "x").destination == slot)
        #expect(RedisCommand("EVALSHA", "hash", "1", "foo").destination == slot)
        #expect(RedisCommand("BLMPOP", "0", 1, "foo", "LEFT").destination == slot)
        #expect(RedisCommand("ZUNION", 1, "foo").destination == slot)
        #expect(RedisCommand("BITOP", "AND", "foo", "bar").destination == slot)
        #expect(RedisCommand("OBJECT", "ENCODING", "foo").destination == slot)
        #expect(RedisCommand("XREAD", "COUNT", 1, "streams", "foo", "0").destination == slot)
        #expect(RedisCommand("SPUBLISH", "foo", "message").destination == slot)
        #expect(RedisCommand("MIGRATE", "host", 1, "foo", 0, 10).destination == slot)
    }

    @Test("a command without a key goes to any server or to a chosen one")
    func withoutKey() {
        #expect(RedisCommand("PING").destination == .anyServer)
        #expect(RedisCommand("PUBLISH", "foo", "message").destination == .anyServer)
        #expect(RedisCommand("EVAL", "return 1", 0).destination == .anyServer)
        #expect(RedisCommand("EVAL").destination == .anyServer)
        #expect(RedisCommand("GET").destination == .anyServer)
        for name in ["SCAN", "FLUSHALL", "dbsize", "SCRIPT", "INFO"] {
            #expect(RedisCommand(.string(name)).destination == .oneServer)
        }
    }

    @Test("refusals of a cluster are recognized")
    func refusals() {
        #expect(ClusterRefusal("MOVED 12182 10.0.0.1:6379") == .moved(slot: 12182, host: "10.0.0.1", port: 6379))
        #expect(ClusterRefusal("MOVED 1 :6379") == .moved(slot: 1, host: "", port: 6379))
        #expect(ClusterRefusal("ASK 5 2001:db8::1:6379") == .ask(host: "2001:db8::1", port: 6379))
        for message in ["TRYAGAIN x", "CLUSTERDOWN Hash slot not served", "LOADING x", "NOREPLICAS x"] {
            #expect(ClusterRefusal(message) == .notNow)
        }
        for message in [
            "", "ERR MOVED", "MOVED", "MOVED 1", "MOVED x h:1", "MOVED 16384 h:1", "MOVED 1 h:", "MOVED 1 h",
        ] {
            #expect(ClusterRefusal(message) == nil)
        }
    }
}
