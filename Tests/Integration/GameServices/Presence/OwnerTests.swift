import GameServices
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServicesTestSupport

extension PresenceTests {
    @Suite("Owners")
    struct OwnerTests {
        @Test("an object of a client leaves when the client is gone and its grace period has passed, once")
        func clientIsGone() async throws {
            try await withNodes { _, one, other, _ in
                let (bucket, watched) = (try one.bucket("room"), try other.bucket("room"))
                let watcher = try await Watcher.start(watched)
                let phone = try await bucket.connect(user: "alice", client: "phone")
                try await bucket.put("a", "1", owner: phone)
                try await bucket.put("b", "2", owner: phone, grace: .milliseconds(300))
                try await watcher.until("both arrive") { $0.objects.count == 2 }
                #expect(try await bucket.disconnect(phone))
                try await watcher.until("both leave") { $0.objects.isEmpty }
                let state = watcher.state
                #expect(state.leaves.map(\.key) == ["a", "b"])
                #expect(state.leaves.allSatisfy { $0.reason == .gone && $0.client == "phone" })
                #expect(state.faults == [] && state.gaps == 0 && state.snapshots == 1)
                #expect(try await bucket.disconnect(phone) == false)
                #expect(await code { try await bucket.put("a", "1", owner: phone) } == .superseded)
            }
        }

        @Test("an object of a user stays when one client goes and another one stays, and leaves with the last")
        func userStays() async throws {
            try await withNodes { _, one, other, _ in
                let (bucket, second) = (try one.bucket("room"), try other.bucket("room"))
                let watcher = try await Watcher.start(second)
                let phone = try await bucket.connect(user: "alice", client: "phone")
                let pad = try await second.connect(user: "alice", client: "pad")
                try await bucket.put("of the user", "1", owner: phone, scope: .user)
                try await bucket.put("of the phone", "2", owner: phone)
                try await second.put("of the pad", "3", owner: pad)
                try await bucket.disconnect(phone)
                try await watcher.until("the phone's object leaves") { !$0.leaves.isEmpty }
                // A change that comes later shows that nothing else has left.
                try await second.put("of the pad", "4", owner: pad)
                try await watcher.until("the pad's object changes") { $0.objects["of the pad"]?.text == "4" }
                #expect(watcher.state.leaves.map(\.key) == ["of the phone"])
                try await second.disconnect(pad)
                try await watcher.until("the others leave") { $0.objects.isEmpty }
                #expect(watcher.state.leaves.map(\.key).sorted() == ["of the pad", "of the phone", "of the user"])
                #expect(watcher.state.faults == [])
            }
        }

        @Test("a client that connects to another node within its grace period does not leave")
        func moves() async throws {
            try await withNodes { _, one, other, _ in
                let (bucket, second) = (try one.bucket("room"), try other.bucket("room"))
                let watcher = try await Watcher.start(bucket)
                let before = try await bucket.connect(user: "alice", client: "phone")
                try await bucket.put("client", "1", owner: before, grace: .seconds(600))
                try await bucket.put("user", "1", owner: before, scope: .user, grace: .seconds(600))
                try await bucket.disconnect(before)
                let after = try await second.connect(user: "alice", client: "phone")
                // The first connection can do nothing more: neither to the client nor with its objects.
                #expect(try await bucket.disconnect(before) == false)
                #expect(await code { try await bucket.put("client", "2", owner: before) } == .superseded)
                #expect(await code { try await bucket.remove("client", owner: before) } == .superseded)
                try await second.put("client", "3", owner: after)
                try await watcher.until("the object changes") { $0.objects["client"]?.text == "3" }
                #expect(watcher.state.leaves == [] && watcher.state.objects.count == 2)
                try await second.disconnect(after)
                try await watcher.until("the object without grace leaves") { $0.leaves.map(\.key) == ["client"] }
                #expect(watcher.state.objects.keys.sorted() == ["user"] && watcher.state.faults == [])
            }
        }

        @Test("when presence ends in order, the grace periods of its clients begin")
        func ordinaryEnd() async throws {
            try await withNodes { redis, one, _, _ in
                let bucket = try one.bucket("room")
                let watcher = try await Watcher.start(bucket)
                try await withPresence(redis: redis) { third in
                    let room = try third.bucket("room")
                    let alice = try await room.connect(user: "alice", client: "phone")
                    try await room.put("kept", "", owner: alice, grace: .seconds(600))
                    try await room.put("brief", "", owner: alice)
                }
                try await watcher.until("the object without grace leaves") { $0.leaves.map(\.key) == ["brief"] }
                #expect(watcher.state.leaves.first?.reason == .gone)
                _ = try await bucket.connect(user: "alice", client: "phone")
                #expect(try await bucket.snapshot().objects.map(\.key) == ["kept"])
            }
        }

        @Test("keys belong to their users; an update keeps the owner and can depend on the version")
        func keys() async throws {
            try await withNodes { _, one, _, _ in
                let bucket = try one.bucket("room")
                let alice = try await bucket.connect(user: "alice", client: "phone")
                let bob = try await bucket.connect(user: "bob", client: "phone")
                let version = try await bucket.put("match", "x", owner: alice, scope: .user)
                #expect(await code { try await bucket.put("match", "o", owner: bob) } == .taken)
                #expect(await code { try await bucket.put("match", "o", owner: alice, onlyNew: true) } == .taken)
                #expect(await code { try await bucket.remove("match", owner: bob) } == .taken)
                let next = try await bucket.update("match", Array("xo".utf8), version: version)
                #expect(next > version)
                #expect(await code { try await bucket.update("match", [], version: version) } == .changed)
                #expect(await code { try await bucket.update("none", []) } == .changed)
                let object = try await bucket.snapshot().objects
                #expect(object.map(\.text) == ["xo"] && object[0].user == "alice" && object[0].client == nil)
                #expect(try await bucket.remove("match", owner: alice))
                #expect(try await bucket.remove("match", owner: alice) == false)
                #expect(try await bucket.snapshot().objects == [])
            }
        }

        @Test("one object is read by its key, whatever keys surround it")
        func object() async throws {
            try await withNodes { _, one, other, _ in
                let bucket = try one.bucket("room")
                #expect(try await bucket.object("a") == nil)
                let alice = try await bucket.connect(user: "alice", client: "phone")
                #expect(try await bucket.object("a") == nil)
                let keys = ["a", "ab", "a\u{0301}", "B", "ä", "zz", "k", "l"]
                for (number, key) in keys.enumerated() { try await bucket.put(key, "\(number)", owner: alice) }
                let reader = try other.bucket("room")
                for (number, key) in keys.enumerated() {
                    let object = try await reader.object(key)
                    #expect(object?.key == key && object?.text == "\(number)" && object?.user == "alice")
                }
                for key in ["aa", "a ", "0", "zzz", "A", "s", "~"] {
                    #expect(try await reader.object(key) == nil, "\(key)")
                }
                #expect(await code { _ = try await bucket.object("") } == .invalidArgument)
            }
        }

        @Test("many processes that change what they have read lose no change")
        func readAndUpdate() async throws {
            try await withNodes { _, one, other, _ in
                let bucket = try one.bucket("room")
                let alice = try await bucket.connect(user: "alice", client: "phone")
                try await bucket.put("count", "0", owner: alice)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 0..<8 {
                        let bucket = try (task % 2 == 0 ? one : other).bucket("room")
                        group.addTask {
                            var done = 0
                            while done < 25 {
                                let object = try #require(try await bucket.object("count"))
                                let next = Array("\(try #require(Int(object.text)) + 1)".utf8)
                                do throws(GameServiceError) {
                                    try await bucket.update("count", next, version: object.version)
                                    done += 1
                                } catch { #expect(error.code == .changed) }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(try await bucket.object("count")?.text == "200")
            }
        }
    }
}
