import ChildProcesses
import Foundation

@testable import RedisDCTesting

/// A plain socket that speaks RESP, so that a test sees exactly the bytes that were sent.
///
/// Blocking calls run on their own threads. No read blocks for more than ten seconds.
final class Wire: Sendable {
    enum Failure: Error {
        /// The peer closed the connection before the reply was complete.
        case closed
        /// No byte arrived in time.
        case silence
        case system(String, CInt)
    }

    private let descriptor: CInt

    init(port: Int) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        self.descriptor = try Self.connect(AF_INET, to: address)
    }

    init(path: String) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        self.descriptor = try Self.connect(AF_UNIX, to: address)
    }

    deinit {
        close(self.descriptor)
    }

    private static func connect<Address>(_ family: CInt, to address: Address) throws -> CInt {
        #if os(Linux)
            let kind = CInt(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        let descriptor = socket(family, kind, 0)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        #if canImport(Darwin)
            // There is no MSG_NOSIGNAL.
            var on: CInt = 1
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<CInt>.size))
        #endif
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let result = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
        guard result == 0 else {
            let code = errno
            close(descriptor)
            throw Failure.system("connect", code)
        }
        return descriptor
    }

    /// Sends a command and returns its reply: a line with its prefix, the text of a string, or
    /// `nil`.
    func ask(_ words: String...) async throws -> String {
        try await self.send(Self.command(words))
        return try await self.answer()
    }

    /// Sends a command on a new connection to a port, and returns its reply.
    static func ask(port: Int, _ words: String...) async throws -> String {
        let wire = try Wire(port: port)
        try await wire.send(Self.command(words))
        return try await wire.answer()
    }

    /// Sends a command on a new connection to a Unix socket, and returns its reply.
    static func ask(path: String, _ words: String...) async throws -> String {
        let wire = try Wire(path: path)
        try await wire.send(Self.command(words))
        return try await wire.answer()
    }

    /// Opens a connection, sends nothing, and returns all bytes until the connection ends.
    static func everythingUntilEnd(port: Int) async throws -> String {
        try await Wire(port: port).everythingUntilEnd()
    }

    static func command(_ words: [String]) -> String {
        "*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
    }

    func send(_ text: String) async throws {
        let descriptor = self.descriptor
        try await ChildProcess.onThreadOfItsOwn {
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { Foundation.send(descriptor, $0.baseAddress, $0.count, noSignal) }
                if count < 0 { throw Failure.system("send", errno) }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Sends until the kernel accepts no more bytes, and returns the number of accepted bytes.
    func sendUntilFull(maxBytes: Int) -> Int {
        let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 16)
        var total = 0
        var lastProgress = Date()
        while total < maxBytes, -lastProgress.timeIntervalSinceNow < 0.3 {
            let count = Foundation.send(self.descriptor, chunk, chunk.count, noSignal | CInt(MSG_DONTWAIT))
            if count > 0 {
                total += count
                lastProgress = Date()
            }
        }
        return total
    }

    /// Closes the sending direction; replies can still arrive.
    func finishSending() {
        shutdown(self.descriptor, CInt(SHUT_WR))
    }

    func answer() async throws -> String {
        let descriptor = self.descriptor
        return try await ChildProcess.onThreadOfItsOwn { try Self.readAnswer(descriptor) }
    }

    /// Returns all bytes until the connection is closed or reset.
    func everythingUntilEnd() async throws -> String {
        let descriptor = self.descriptor
        return try await ChildProcess.onThreadOfItsOwn {
            var text: [UInt8] = []
            while true {
                do {
                    text.append(try Self.readByte(descriptor))
                } catch Failure.closed {
                    return String(decoding: text, as: UTF8.self)
                }
            }
        }
    }

    /// Whether bytes or the end of the connection can be read immediately.
    var hasInput: Bool {
        var request = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, 0) > 0
    }

    /// Whether the connection ended with a reset. Valid only after the connection has ended.
    var endedWithReset: Bool {
        var byte: UInt8 = 0
        return recv(self.descriptor, &byte, 1, 0) < 0 && errno == ECONNRESET
    }

    private static func readAnswer(_ descriptor: CInt) throws -> String {
        var line = ""
        while !line.hasSuffix("\r\n") { line.unicodeScalars.append(UnicodeScalar(try self.readByte(descriptor))) }
        let count = Int(line.dropFirst().dropLast()) ?? 0
        switch line.first {
        case "$" where count < 0: return "nil"
        case "$":
            let bytes = try (0..<(count + 2)).map { _ in try self.readByte(descriptor) }
            return String(decoding: bytes.dropLast(2), as: UTF8.self)
        case "*": return try (0..<max(count, 0)).map { _ in try self.readAnswer(descriptor) }.joined(separator: " ")
        default: return String(line.dropLast())
        }
    }

    private static func readByte(_ descriptor: CInt) throws -> UInt8 {
        var byte: UInt8 = 0
        switch recv(descriptor, &byte, 1, 0) {
        case 1: return byte
        case 0: throw Failure.closed
        default:
            if errno == ECONNRESET { throw Failure.closed }
            if errno == EAGAIN || errno == EWOULDBLOCK { throw Failure.silence }
            throw Failure.system("recv", errno)
        }
    }
}

#if os(Linux)
    private let noSignal = CInt(MSG_NOSIGNAL)
#else
    private let noSignal: CInt = 0
#endif
