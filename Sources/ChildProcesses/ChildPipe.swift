import Foundation

/// A pipe whose ends are not inherited by child processes.
///
/// A pipe is used by one thread. Releasing it closes both ends.
package final class ChildPipe {
    package private(set) var readEnd: CInt
    package private(set) var writeEnd: CInt

    package init() throws {
        var ends: [CInt] = [-1, -1]
        // A pair of sockets, because on Linux socketpair can create it close-on-exec; pipe2 is not available in Swift.
        #if canImport(Darwin)
            let made = socketpair(AF_UNIX, SOCK_STREAM, 0, &ends)
        #elseif canImport(Musl)
            let made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, &ends)
        #else
            let made = socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends)
        #endif
        guard made == 0 else { throw ChildProcess.Failure(action: "make a pipe", code: errno) }
        // Numbered above the descriptors that children receive, so that dup2 never overwrites one of these.
        self.readEnd = fcntl(ends[0], F_DUPFD_CLOEXEC, 10)
        self.writeEnd = fcntl(ends[1], F_DUPFD_CLOEXEC, 10)
        let code = errno
        for end in ends { close(end) }
        if self.readEnd < 0 || self.writeEnd < 0 {
            throw ChildProcess.Failure(action: "make a pipe", code: code)
        }
    }

    deinit {
        self.closeReadEnd()
        self.closeWriteEnd()
    }

    private func closeReadEnd() {
        if self.readEnd >= 0 { close(self.readEnd) }
        self.readEnd = -1
    }

    package func closeWriteEnd() {
        if self.writeEnd >= 0 { close(self.writeEnd) }
        self.writeEnd = -1
    }

    /// Returns the write end. The caller must close it.
    package func takeWriteEnd() -> CInt {
        defer { self.writeEnd = -1 }
        return self.writeEnd
    }

    /// Returns the next line without its newline, or nil if the pipe ends before a newline. Blocks.
    package func readLine() -> String? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while self.readBytes(into: &byte, count: 1) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return nil
    }

    /// Returns the text up to the end of the pipe. Blocks.
    package func readToEnd() -> String {
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = self.readBytes(into: &chunk, count: chunk.count)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += chunk[..<count]
        }
    }

    private func readBytes(into buffer: UnsafeMutableRawPointer, count: Int) -> Int {
        while true {
            let result = read(self.readEnd, buffer, count)
            if result >= 0 || errno != EINTR { return result }
        }
    }
}
