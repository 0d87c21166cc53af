// The standard streams of a command-line tool. Nothing else in a tool's sources writes to them.
import Foundation
import Synchronization

/// The standard output of a tool.
///
/// A write that returns has handed all of its bytes to the system: the process buffers nothing. If
/// bytes cannot be written, the write throws, and so does every later one. A command may therefore
/// acknowledge what it has written, and a tool whose output was lost never exits with 0.
package enum StandardOutput {
    private static let descriptor: CInt = STDOUT_FILENO
    /// The number of bytes that a pipe takes without blocking when it is ready: `PIPE_BUF`.
    #if os(Linux)
        private static let chunkSize = 4096
    #else
        private static let chunkSize = 512
    #endif
    /// The first failure. What is written after it would leave a gap.
    private static let firstFailure = Mutex<Failure?>(nil)
    /// Lines of concurrent tasks are not mixed.
    private static let turn = Mutex<Void>(())

    /// Why the output has failed; `nil` if it has not.
    package static var failure: Failure? { firstFailure.withLock { $0 } }

    /// Prepares the standard streams of the process. Call this before anything opens a file.
    ///
    /// A stream that is closed when the process starts is replaced by `/dev/null`, opened for the
    /// other direction: reading or writing fails as before, and no file or connection that is
    /// opened later takes its number.
    package static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        for stream in 0...2 as ClosedRange<CInt> {
            let flags = fcntl(stream, F_GETFD)
            // Descriptors that close on exec have been opened by this process, so the stream was closed before.
            guard flags < 0 || flags & FD_CLOEXEC != 0 else { continue }
            if flags >= 0 {
                if stream == descriptor { fail(with: EBADF) }
                continue
            }
            _ = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    // MARK: Writing

    /// Writes a line of text.
    ///
    /// - Throws: a ``Failure`` if it cannot be written completely.
    package static func write(line: String) throws(Failure) { try write(Array((line + "\n").utf8)) }

    /// Writes bytes. Blocks while the reader is slow, until the task is cancelled.
    ///
    /// - Throws: a ``Failure`` if they cannot be written completely.
    package static func write(_ bytes: [UInt8]) throws(Failure) {
        let error: CInt? = turn.withLock { _ in
            guard failure == nil else { return nil }
            return writeAll(bytes, to: descriptor)
        }
        if let error { fail(with: error) }
        if let failure { throw failure }
    }

    /// The error with which a write has ended; `nil` for none.
    fileprivate static func writeAll(_ bytes: [UInt8], to descriptor: CInt) -> CInt? {
        var rest = bytes[...]
        while !rest.isEmpty {
            var stream = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&stream, 1, 100) > 0 else {
                if Task.isCancelled { return ECANCELED }
                continue
            }
            let count = rest.prefix(chunkSize).withUnsafeBytes { write(to: descriptor, $0) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR, errno != EAGAIN {
                return errno
            }
        }
        return nil
    }

    private static func write(to descriptor: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
        Foundation.write(descriptor, bytes.baseAddress, bytes.count)
    }

    private static func fail(with error: CInt) {
        let failure =
            switch error {
            // As quiet as a program that SIGPIPE ends.
            case EPIPE: Failure(.readerGone, "")
            case ECANCELED: Failure(.interrupted, "interrupted")
            default: Failure(.outputFailed, "cannot write to standard output: \(String(cString: strerror(error)))")
            }
        firstFailure.withLock { if $0 == nil { $0 = failure } }
    }

    // MARK: The reader

    /// Calls `body` as soon as standard output is a pipe or socket that nobody can read any more,
    /// even if nothing is written.
    package static func onReaderGone(_ body: @escaping @Sendable () -> Void) {
        guard [S_IFIFO, S_IFSOCK].contains(kind) else { return }
        Thread.detachNewThread {
            // Not every system wakes a poll that waits for no event.
            while !isReaderGone(within: 500) {}
            fail(with: EPIPE)
            body()
        }
    }

    /// Waits until the reader of the pipe that is standard output has taken everything out of it.
    /// Returns immediately for other kinds of output, and on systems that do not tell.
    ///
    /// - Throws: a ``Failure`` if the reader has gone and has left something, or if the task is
    ///   cancelled.
    package static func untilRead() async throws(Failure) {
        while let unread = self.unread, unread > 0 {
            if isReaderGone() { fail(with: EPIPE) }
            if let failure { throw failure }
            do { try await Task.sleep(for: .milliseconds(10)) } catch { throw Failure(.interrupted, "interrupted") }
        }
    }

    /// The number of bytes in the pipe; `nil` if that is not known.
    private static var unread: CInt? {
        #if os(Linux)
            var count: CInt = 0
            guard kind == S_IFIFO, ioctl(descriptor, UInt(FIONREAD), &count) == 0 else { return nil }
            return count
        #else
            return nil
        #endif
    }

    /// The type of the file, `S_IFIFO` for example.
    private static var kind: mode_t {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0
    }

    private static func isReaderGone(within milliseconds: CInt = 0) -> Bool {
        guard [S_IFIFO, S_IFSOCK].contains(kind) else { return false }
        var stream = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&stream, 1, milliseconds) > 0 && Int32(stream.revents) & Int32(POLLERR | POLLHUP) != 0
    }

    // MARK: The terminal

    /// The size of the terminal that is standard output; `nil` if it is not a terminal.
    package static var terminalSize: (rows: Int, columns: Int)? {
        var size = winsize()
        guard isatty(descriptor) == 1, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
        return (size.ws_row > 0 ? Int(size.ws_row) : 24, size.ws_col > 0 ? Int(size.ws_col) : 80)
    }
}

/// The standard error of a tool.
package enum StandardError {
    package static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// Writes text as far as possible: there is no other place for a failure.
    package static func write(_ text: String) {
        _ = StandardOutput.writeAll(ArgumentText.bytes(of: text), to: STDERR_FILENO)
    }
}
