package import Foundation

/// Functions that start and reap programs with `posix_spawn`.
///
/// A child inherits only the descriptors that it is given. Foundation's `Process` is not used
/// because it cannot pass a descriptor above 2, and cannot be waited for without a run loop.
package enum ChildProcess {
    /// A failed system call.
    package struct Failure: Error, CustomStringConvertible {
        let action: String
        let code: CInt

        package init(action: String, code: CInt) {
            self.action = action
            self.code = code
        }

        /// A message that names the action and the system's reason.
        package var description: String { "cannot \(action): \(String(cString: strerror(code)))" }
    }

    /// Starts a program.
    ///
    /// The child has an empty signal mask and the default action for the signals in `resetting`.
    /// Threads of a concurrency runtime may block `SIGTERM`, and a server that inherited their mask
    /// would not receive it.
    ///
    /// - Parameters:
    ///   - command: the absolute path of the program, followed by its arguments.
    ///   - descriptors: for each descriptor of the child, the descriptor of this process to
    ///     duplicate. Descriptors 0, 1 and 2 are `/dev/null` unless given.
    ///   - environment: the environment of the child; by default that of this process.
    ///   - sharesGroup: whether the child joins the process group of this process instead of a new
    ///     one.
    ///   - resetting: the signals for which the child gets the default action.
    /// - Returns: the process ID, which is also the ID of the child's new group. The caller must
    ///   reap the child.
    /// - Throws: ``Failure`` if the program cannot be started.
    package static func spawn(
        _ command: [String], descriptors: [CInt: CInt],
        environment: [String: String] = ProcessInfo.processInfo.environment, sharesGroup: Bool = false,
        resetting: [CInt] = [SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD]
    ) throws -> pid_t {
        try self.spawn(
            command.map { Array($0.utf8) }, descriptors: descriptors,
            variables: environment.map { Array("\($0.key)=\($0.value)".utf8) }, sharesGroup: sharesGroup,
            resetting: resetting)
    }

    /// Starts a program, as ``spawn(_:descriptors:environment:sharesGroup:resetting:)`` does, with
    /// arguments and variables that may be no UTF-8 text.
    ///
    /// - Parameter variables: the environment of the child, `NAME=VALUE`.
    package static func spawn(
        _ command: [[UInt8]], descriptors: [CInt: CInt], variables: [[UInt8]], sharesGroup: Bool = false,
        resetting: [CInt]
    ) throws -> pid_t {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
            let platformFlags = CInt(POSIX_SPAWN_CLOEXEC_DEFAULT)
        #else
            var actions = posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
            let platformFlags: CInt = 0
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for standard in 0...2 as ClosedRange<CInt> where descriptors[standard] == nil {
            posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0)
        }
        for (child, ours) in descriptors {
            posix_spawn_file_actions_adddup2(&actions, ours, child)
        }
        #if !canImport(Darwin)
            self.closeOthers(from: max(2, descriptors.keys.max() ?? 2) + 1, &actions)
        #endif

        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for signal in resetting { sigaddset(&defaults, signal) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setpgroup(&attributes, 0)
        let groupFlag = sharesGroup ? 0 : CInt(POSIX_SPAWN_SETPGROUP)
        let flags = groupFlag | CInt(POSIX_SPAWN_SETSIGMASK) | CInt(POSIX_SPAWN_SETSIGDEF) | platformFlags
        posix_spawnattr_setflags(&attributes, Int16(flags))

        var process: pid_t = 0
        let code = withCStrings(command) { arguments in
            withCStrings(variables) { posix_spawn(&process, arguments[0]!, &actions, &attributes, arguments, $0) }
        }
        guard code == 0 else {
            throw Failure(action: "start \(String(decoding: command[0], as: UTF8.self))", code: code)
        }
        return process
    }

    #if !canImport(Darwin)
        /// Closes all descriptors of the child from a number on.
        ///
        /// Many descriptors can be inherited, such as SwiftNIO's sockets. A server that inherited a
        /// client's connection would keep it open after the client has closed it.
        private static func closeOthers(from first: CInt, _ actions: inout posix_spawn_file_actions_t) {
            // Looked up by name, because glibc has the function only since 2.34, and musl does not have it.
            typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, CInt) -> CInt
            if let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") {
                _ = unsafeBitCast(symbol, to: CloseFrom.self)(&actions, first)
                return
            }
            let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
            for descriptor in open.compactMap({ CInt($0) }) where descriptor >= first {
                posix_spawn_file_actions_addclose(&actions, descriptor)
            }
        }
    #endif

    /// Waits until a child has exited and reaps it. Blocks the thread.
    ///
    /// - Returns: the exit status, or nil if a signal ended the child.
    @discardableResult
    package static func reap(_ process: pid_t) -> CInt? {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            // ECHILD: this program ignores SIGCHLD, so the kernel has discarded the status. The child has exited.
            guard errno == EINTR else { return nil }
        }
        return status & 0x7f == 0 ? (status >> 8) & 0xff : nil
    }

    /// Runs a program until it exits, and returns its status and its standard output and error.
    package static func run(_ command: [String]) async throws -> (status: CInt?, output: String) {
        try await onThreadOfItsOwn {
            let output = try ChildPipe()
            let process = try spawn(command, descriptors: [1: output.writeEnd, 2: output.writeEnd])
            output.closeWriteEnd()
            let text = output.readToEnd()
            return (reap(process), text)
        }
    }

    /// Runs a blocking body on its own thread.
    package static func onThreadOfItsOwn<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
        }
    }

    /// Calls a body with a null-terminated array of C strings.
    private static func withCStrings<R>(
        _ strings: [[UInt8]], _ body: ([UnsafeMutablePointer<CChar>?]) -> R
    ) -> R {
        let copies = strings.map { bytes in
            (bytes + [0]).withUnsafeBytes { strdup($0.bindMemory(to: CChar.self).baseAddress!) }
        }
        defer { for copy in copies { free(copy) } }
        return body(copies + [nil])
    }
}
