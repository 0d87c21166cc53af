// Acknowledgements, and sends under shared ids, that a promoted replica lacks.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests.FailureTests {
    @Test(
        "what devices have acknowledged and a promoted replica lacks is acknowledged again, before anybody reads",
        arguments: [false, true])
    func lostAcknowledgements(isInterrupted: Bool) async throws {
        try await withReplicatedServers { servers in
            try await withRedisClient(url: servers.url) { redis in
                try await withPostOffice(redis: redis) { office in
                    let names = (0..<300).map { "alice \($0)" }
                    for start in stride(from: 0, to: names.count, by: 100) {
                        try await office.send(
                            [Message(text: "a"), Message(text: "b")], to: Array(names[start..<start + 100]))
                    }
                    var cursors: [String: Cursor] = [:]
                    for name in names { cursors[name] = try await office.mailbox(name).look(device: "phone").cursor }
                    // Kept for another device.
                    for name in names { try await office.mailbox(name).register(device: "laptop") }
                    try await servers.cutReplication()
                    for name in names {
                        let isKnown = try await office.mailbox(name).acknowledge(cursors[name]!, device: "phone")
                        #expect(isKnown)
                    }
                    // The connection ends in the middle of the repetitions, and they go on with the next one.
                    if isInterrupted { await servers.proxy.dropNextReply(matching: "mail:alice 150") }
                    await servers.promote()
                    // The first call on the new connection.
                    let delivery = try await office.mailbox(names[0]).look(device: "phone")
                    #expect(servers.proxy.counters.droppedReplies == (isInterrupted ? 1 : 0))
                    #expect(delivery.messages.isEmpty)
                    for name in names {
                        let phone = try await office.mailbox(name).devices().first { $0.name == "phone" }
                        #expect(phone?.acknowledged.index == 2, "\(name)")
                    }
                }
            }
        }
    }

    @Test("the acknowledgement of a device that was forgotten does not make it known again")
    func lostAcknowledgementOfForgotten() async throws {
        try await withReplicatedServers { servers in
            try await withRedisClient(url: servers.url) { redis in
                try await withPostOffice(redis: redis) { office in
                    let mailbox = try office.mailbox("alice")
                    try await office.send("a", to: "alice")
                    let cursor = try await mailbox.look(device: "phone").cursor
                    try await servers.cutReplication()
                    try await mailbox.acknowledge(cursor, device: "phone")
                    try await withRedisClient(url: servers.replica.url) { replica in
                        try await withPostOffice(redis: replica) { other in
                            let isForgotten = try await other.mailbox("alice").forget(device: "phone")
                            #expect(isForgotten)
                        }
                    }
                    await servers.promote()
                    // The first call on the new connection: one on the connection before may fail.
                    let delivery = try await office.mailbox("bob").look(device: "phone")
                    #expect(delivery.messages.isEmpty)
                    let devices = try await mailbox.devices()
                    #expect(devices.isEmpty)
                }
            }
        }
    }

    @Test("a send that another process has sent again under the same id is no reason for a gap")
    func sharedID() async throws {
        try await withReplicatedServers { servers in
            try await withFaultProxy(to: .port(servers.proxy.port)) { proxy in
                try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { first in
                    try await withRedisClient(url: servers.url) { second in
                        try await withPostOffice(redis: first) { one in
                            try await withPostOffice(redis: second) { two in
                                try await sendTwice(servers, proxy, one, two)
                            }
                        }
                    }
                }
            }
        }
    }

    private func sendTwice(
        _ servers: ReplicatedServers, _ proxy: FaultProxy, _ one: PostOffice, _ two: PostOffice
    ) async throws {
        let mailbox = try two.mailbox("alice")
        try await one.send("kept", to: "alice")
        let kept = try await mailbox.look(device: "phone").cursor
        try await servers.cutReplication()
        try await one.send("shared", to: "alice", id: "shared")
        try await two.send("shared", to: "alice", id: "shared")
        // The one that has stored it is the second that compares.
        await proxy.stall()
        await servers.promote()
        // The call may fail on the connection before.
        try await until("the other one has sent it again") { (try? await mailbox.peek().count) == 2 }
        await proxy.heal()
        try await one.send("next", to: "alice")
        let delivery = try await mailbox.look(after: kept, device: "phone")
        #expect(delivery.word == "shared next")
    }
}
