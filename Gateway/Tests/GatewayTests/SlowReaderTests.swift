import Foundation
import Hiredis
import NIOCore
import QueueListen
import Testing

@testable import Gateway

/// Clients that are connected and do not read, or do not send.
@Suite("Slow clients")
struct SlowReaderTests {
    @Test("a socket that does not read is closed, and its mailbox keeps everything")
    func socket() async throws {
        try await withNodes(configure: {
            $0.maxWriteTime = .milliseconds(500)
            $0.keepAliveInterval = .milliseconds(200)
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let socket = try await TestSocket.open(alice)
            try await socket.stopReading()
            try await fill(nodes[0].office)
            try await until("the socket is closed") { nodes[0].gateway.openStreams == 0 }
            #expect(try await nodes[0].office.mailbox("alice").count == 200)
            try await socket.close()
            try await readAll(alice)
        }
    }

    @Test("a client that reads again when its socket is being closed learns that it was too slow")
    func closeCode() async throws {
        try await withNodes(configure: {
            $0.maxWriteTime = .milliseconds(500)
            $0.keepAliveInterval = .milliseconds(200)
        }) { nodes, _ in
            // A client that stands still for too long before it reads again finds the connection closed: another one tries.
            var (code, number): (Int?, Int) = (nil, 0)
            repeat {
                number += 1
                let user = "alice\(number)"
                let alice = try await TestClient(nodes[0].url, user)
                let socket = try await TestSocket.open(alice)
                try await socket.stopReading()
                try await fill(nodes[0].office, user)
                try await until("the socket is being closed") {
                    nodes[0].log.text.components(separatedBy: "takes nothing").count > number
                }
                try await socket.continueReading()
                code = try await socket.closeCode()
                try await readAll(alice)
            } while code == nil && number < 5
            #expect(code == 4003)
        }
    }

    #if os(Linux)
        /// Checks the setting alone. Tests/Network/vanished.py takes the network of a client away.
        @Test("the system closes a connection whose client acknowledges no bytes for a while")
        func unacknowledged() async throws {
            try await withNodes(configure: { $0.maxWriteTime = .seconds(8) }) { nodes, _ in
                try await withRawConnection(port: nodes[0].port) { connection in
                    try await connection.write("GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n")
                    _ = try await connection.readHead()
                    let port = connection.channel.localAddress?.port
                    var times: [Int32] = []
                    // The node is in this process, so its end of the connection is, too.
                    for descriptor in Int32(3)..<4096 where Self.port(ofPeer: descriptor) == port {
                        var (time, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
                        if getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &time, &size) == 0 {
                            times.append(time)
                        }
                    }
                    #expect(times == [21_000])
                }
            }
        }

        private static func port(ofPeer descriptor: Int32) -> Int? {
            var (address, size) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) }
            }
            return result == 0 && address.sin_family == sa_family_t(AF_INET)
                ? Int(in_port_t(bigEndian: address.sin_port)) : nil
        }
    #endif

    @Test("an event stream that does not read is closed, and its mailbox keeps everything")
    func events() async throws {
        try await withNodes(configure: {
            $0.maxWriteTime = .milliseconds(500)
            $0.keepAliveInterval = .milliseconds(200)
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let events = try await TestEvents(alice)
            try await fill(nodes[0].office)
            try await until("the stream is closed") { nodes[0].gateway.openStreams == 0 }
            #expect(try await nodes[0].office.mailbox("alice").count == 200)
            _ = events.status
            try await readAll(alice)
        }
    }

    /// The difference of two numbers: the bytes that Redis has sent to the node, and the bytes that have left the node for
    /// the client. The node holds no others.
    @Test("a node holds at most two pages for a stream that does not read", arguments: [true, false])
    func bounded(isSocket: Bool) async throws {
        try await withNodes(configure: {
            $0.maxWriteTime = .seconds(3)
            $0.keepAliveInterval = .seconds(3600)
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            // Each message is a page: two are larger than 256 KiB.
            let (size, count) = (250_000, 100)
            let body = String(repeating: "x", count: size)
            for _ in 0..<count { try await nodes[0].office.send(body, to: "alice") }
            let before = try await bytesSent(nodes[0].redis)
            func blocked(_ connection: inout RawConnection) async throws -> (taken: Int, left: Int) {
                var looks = 0
                try await until("the stream is open, or has been") {
                    if nodes[0].gateway.openStreams == 1 { return true }
                    // Seldom, because a reply with the number adds to it.
                    looks += 1
                    guard looks % 100 == 0 else { return false }
                    return try await bytesSent(nodes[0].redis) - before > size
                }
                try await until("the stream is closed") { nodes[0].gateway.openStreams == 0 }
                let taken = try await bytesSent(nodes[0].redis) - before
                return (taken, try await connection.countToEnd())
            }
            let (taken, left): (Int, Int)
            if isSocket {
                (taken, left) = try await withRawSocket(nodes[0], alice) { try await blocked(&$0.connection) }
            } else {
                (taken, left) = try await withRawConnection(port: nodes[0].port, receiveBuffer: 65536) { connection in
                    let headers = alice.headers("GET", "/v1/events").map { "\($0.name): \($0.value)\r\n" }.joined()
                    try await connection.write("GET /v1/events HTTP/1.1\r\nHost: gateway\r\n\(headers)\r\n")
                    return try await blocked(&connection)
                }
            }
            // The stream was closed because it did not read, not because everything was written.
            try #require(taken < size * count)
            #expect(left > 0)
            #expect(taken - left < 2 * size + 100_000, "\(taken) - \(left)")
            #expect(try await nodes[0].office.mailbox("alice").count == count)
            try await readAll(alice, count)
        }
    }

    /// The number of bytes that Redis has sent to its clients.
    private func bytesSent(_ redis: RedisClient) async throws -> Int {
        let info = try await redis.send("INFO", "stats").string ?? ""
        let line = info.split(separator: "\r\n").first { $0.hasPrefix("total_net_output_bytes:") }
        return try #require(line.flatMap { Int($0.split(separator: ":")[1]) })
    }

    /// Sends 40 MB, more than all buffers of a connection hold.
    private func fill(_ office: PostOffice, _ user: String = "alice") async throws {
        let body = String(repeating: "x", count: 200_000)
        for _ in 0..<200 { try await office.send(body, to: user) }
    }

    private func readAll(_ client: TestClient, _ total: Int = 200) async throws {
        var (count, cursor): (Int, String?) = (0, nil)
        while count < total {
            let page = try await client.mail(after: cursor)
            try #require(page.body["status"] == "messages")
            count += page.texts.count
            cursor = page.cursor
        }
        #expect(count == total)
    }

    @Test("a connection whose header does not arrive is closed, at its first request and at later ones")
    func header() async throws {
        try await withNodes(configure: { $0.headerTime = .seconds(2) }) { nodes, _ in
            func received(_ text: String) async throws -> String {
                try await withRawConnection(port: nodes[0].port) { connection in
                    try? await connection.write(text)
                    return String(decoding: try await connection.readToEnd(), as: UTF8.self)
                }
            }
            let half = "GET /v1/mail HTTP/1.1\r\nHost:"
            #expect(try await received(half) == "")
            try await until("the first request is answered, unless it comes too late") {
                let text = try await received("GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n" + half)
                return text.contains("404")
            }
        }
    }

    @Test("a connection whose body does not arrive is closed, and one that sends it slowly in time is answered")
    func body() async throws {
        let head = "POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n"
        let login = head.replacing("nothing", with: "sessions")
        try await withNodes(configure: { $0.bodyTime = .seconds(2) }) { nodes, _ in
            for first in ["", head + "{}{}"] {
                try await withRawConnection(port: nodes[0].port) { connection in
                    try await connection.write(first + login + "{")
                    let answers = String(decoding: try await connection.readToEnd(), as: UTF8.self)
                    #expect(answers.contains("404") == !first.isEmpty && !answers.contains("400"))
                }
            }
        }
        try await withNodes(configure: { $0.headerTime = .milliseconds(300) }) { nodes, _ in
            // Again if the header comes too late.
            try await until("the body is read, longer than a header may take") {
                try await withRawConnection(port: nodes[0].port) { connection in
                    try? await connection.write(login)
                    for byte in ["[", "]", " ", " "] {
                        // The slowness is what is tested.
                        try await Task.sleep(for: .milliseconds(200))
                        try? await connection.write(byte)
                    }
                    return try await connection.readHead()?.contains("400") == true
                }
            }
        }
    }
}
