// A client of the protocol RESP2 that blocks: it sends many commands at once and reads their replies.

import Foundation
import SimulatedRedis

/// The connection has ended, or was not made.
struct ConnectionFailure: Error {
    var reason: String
}

/// A connection over a Unix socket.
final class Connection {
    private let socket: Int32
    private var buffer: [UInt8] = []
    private var position = 0

    init(to path: String) throws {
        #if canImport(Glibc)
            socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #else
            socket = Darwin.socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        // From here on, deinit closes the socket.
        guard status == 0 else { throw ConnectionFailure(reason: "cannot connect to \(path)") }
        // A command that waits for ever is a fault of the test.
        var timeout = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(socket) }

    func send(_ command: [Bytes]) throws -> Reply { try send(pipeline: [command])[0] }

    /// Sends commands at once, and returns their replies.
    func send(pipeline commands: [[Bytes]]) throws -> [Reply] {
        var replies: [Reply] = []
        var rest = commands[...]
        while !rest.isEmpty {
            // Few enough for the buffers of the socket, so that both sides never wait for each other.
            var request: [UInt8] = []
            var count = 0
            while let command = rest.first, count == 0 || request.count < 50_000 {
                encode(command, into: &request)
                count += 1
                rest.removeFirst()
            }
            try write(request)
            for _ in 0..<count { replies.append(try readReply()) }
        }
        return replies
    }

    /// Sends a command whose reply comes later.
    func write(_ command: [Bytes]) throws {
        var request: [UInt8] = []
        encode(command, into: &request)
        try write(request)
    }

    private func encode(_ command: [Bytes], into request: inout [UInt8]) {
        request += Array("*\(command.count)\r\n".utf8)
        for word in command {
            request += Array("$\(word.count)\r\n".utf8)
            request += word.array
            request += [13, 10]
        }
    }

    private func write(_ request: [UInt8]) throws {
        var sent = 0
        while sent < request.count {
            let count = request.withUnsafeBytes { Foundation.write(socket, $0.baseAddress! + sent, $0.count - sent) }
            guard count > 0 else { throw ConnectionFailure(reason: "the server has closed the connection") }
            sent += count
        }
    }

    func readReply() throws -> Reply {
        let line = try readLine()
        let text = Bytes(Array(line.dropFirst()))
        switch line.first {
        case UInt8(ascii: "+"): return .status(text)
        case UInt8(ascii: "-"): return .error(text)
        case UInt8(ascii: ":"): return .integer(Int64(text.text) ?? 0)
        case UInt8(ascii: "$"):
            let count = Int(text.text) ?? -1
            guard count >= 0 else { return .null }
            let bytes = try read(count)
            _ = try read(2)
            return .bulk(Bytes(bytes))
        case UInt8(ascii: "*"):
            let count = Int(text.text) ?? -1
            guard count >= 0 else { return .nullArray }
            return .array(try (0..<count).map { _ in try readReply() })
        default: throw ConnectionFailure(reason: "unknown reply \(Bytes(line))")
        }
    }

    private func readLine() throws -> [UInt8] {
        var searched = position
        while true {
            if let end = buffer[searched...].firstIndex(of: 13), end + 1 < buffer.count {
                defer { position = end + 2 }
                return Array(buffer[position..<end])
            }
            searched = max(position, buffer.count - 1)
            let skipped = position
            try fill()
            searched -= skipped - position
        }
    }

    private func read(_ count: Int) throws -> [UInt8] {
        while buffer.count - position < count { try fill() }
        defer { position += count }
        return Array(buffer[position..<(position + count)])
    }

    private func fill() throws {
        buffer.removeFirst(position)
        position = 0
        var chunk = [UInt8](repeating: 0, count: 65536)
        let count = Foundation.read(socket, &chunk, chunk.count)
        guard count > 0 else { throw ConnectionFailure(reason: "the server has not replied") }
        buffer += chunk[..<count]
    }
}
