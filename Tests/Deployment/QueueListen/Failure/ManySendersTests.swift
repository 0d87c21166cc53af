// Many senders whose messages a promoted replica lacks.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests.FailureTests {
    @Test(
        "what a thousand senders have lost at once arrives once, each sender's in order, and a reader that has it goes on",
        .timeLimit(.minutes(5)))
    func thousandSenders() async throws {
        try await withReplicatedServers { servers in
            try await withRedisClient(url: servers.url) { redis in
                try await withPostOffice(redis: redis) { first in
                    let senders = try [first] + (1..<1000).map { _ in try PostOffice(redis: redis) }
                    // The replica knows the mailbox, and one message of it.
                    try await first.send("kept", to: "all")
                    let kept = try await first.mailbox("all").look(device: "phone").cursor
                    // Nothing is deleted before this device has it.
                    try await first.mailbox("all").register(device: "laptop")
                    try await servers.cutReplication()
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for (number, sender) in senders.enumerated() {
                            group.addTask {
                                try await sender.send("\(number).0", to: "all")
                                try await sender.send("\(number).1", to: "all", "team \(number % 20)")
                            }
                        }
                        try await group.waitForAll()
                    }
                    // A reader that has half of it, in the order of the former master.
                    let half = try await first.mailbox("all").look(after: kept, device: "phone", limit: 1000)
                    #expect(half.messages.count == 1000 && !half.status.isLoss)
                    await servers.promote()
                    var received = half.messages.map(\.text)
                    var cursor = half.cursor
                    while received.count < 2000 {
                        let delivery = try await first.mailbox("all").listen(
                            after: cursor, device: "phone", timeout: .seconds(60))
                        // Without a message if all that was read are copies.
                        guard case .messages = delivery.status else {
                            Issue.record("\(delivery.status) after \(received.count) messages")
                            return
                        }
                        received += delivery.messages.map(\.text)
                        cursor = delivery.cursor
                    }
                    #expect(Set(received).count == 2000 && received.count == 2000)
                    for number in senders.indices {
                        let places = ["\(number).0", "\(number).1"].map { received.firstIndex(of: $0) }
                        #expect(places[0] ?? .max < places[1] ?? 0, "sender \(number)")
                    }
                    // The other device finds all of it, once.
                    var others: [String] = []
                    var page = try await first.mailbox("all").look(device: "laptop")
                    while !page.messages.isEmpty {
                        others += page.messages.map(\.text)
                        page = try await first.mailbox("all").look(after: page.cursor, device: "laptop")
                    }
                    #expect(others.count == 2001)
                    #expect(Set(others) == Set(received + ["kept"]))
                    for team in 0..<20 {
                        let texts = try await first.mailbox("team \(team)").look(limit: 1000).messages.map(\.text)
                        #expect(texts.count == 50 && Set(texts).count == 50, "team \(team)")
                    }
                    withExtendedLifetime(senders) {}
                }
            }
        }
    }
}
