import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("A program in another language", .serialized)
    struct ForeignNodeTests {
        @Test("the Python program of docs/wire-format.md sends a message and reads it")
        func python() async throws {
            let wireFormat = packageRoot.appendingPathComponent("docs/wire-format.md")
            let page = try String(contentsOf: wireFormat, encoding: .utf8)
            let parts = page.components(separatedBy: "```python\n")
            try #require(parts.count == 2)
            let program = try #require(parts[1].components(separatedBy: "```").first)
            try await withLocalRedis { server in
                let here = "import os; os.chdir('\(packageRoot.path)')\n"
                let port = program.replacingOccurrences(of: "6379", with: "\(server.port)")
                let output = try await Child("python3", ["-c", here + port]).result()
                #expect(output.contains("hello"), "\(output)")
            }
        }

        @Test("sends, listens, acknowledges and is notified with nothing but the Lua files")
        func takesPart() async throws {
            try await withOffice { office, redis, _ in
                let node = ForeignNode(redis: redis)
                let mailbox = try office.mailbox("alice")
                // The foreign node sends to the library.
                let waiting = Task { try await mailbox.listen() }
                try await office.untilWaiting(1, at: "alice")
                let sent = try await node.send(["hello", "again"], to: ["alice", "bob"], number: 1)
                #expect(sent == ["ok", "1", "1"])
                let delivery = try await waiting.value
                #expect(delivery.word == "hello again")
                #expect(delivery.messages.map(\.id) == ["1/0", "1/1"])
                // The library sends to the foreign node.
                let first = try await node.listen(to: "bob")
                #expect(ForeignNode.texts(first) == ["hello", "again"])
                let empty = try await node.listen(to: "bob", after: ForeignNode.end(first), poll: 2)
                #expect(Array(empty.prefix(3)) == ["ok", first[1], "2"] && empty.count == 4)
                try await redis.withSubscription(to: [.channel(node.key("wake:\(ForeignNode.process)"))]) { events in
                    try await office.send("from us", to: "bob", "alice")
                    guard case .message(let wakeUp)? = try await events.next() else { return }
                    let received = try #require(MailWakeUp.decode(wakeUp.payload).first)
                    #expect(
                        received.mailbox == "bob" && received.growth?.start.index == 2
                            && received.growth?.end.index == 3)
                }
                let last = try await node.listen(to: "bob", after: ForeignNode.end(empty), poll: 2, begins: false)
                #expect(ForeignNode.texts(last) == ["from us"])
            }
        }
    }
}
