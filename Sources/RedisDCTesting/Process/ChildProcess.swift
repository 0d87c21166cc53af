package import Foundation

/// Starting and reaping a program with `posix_spawn`, with nothing inherited but the descriptors it is given.
///
/// Foundation's `Process` is not used: it can neither place a descriptor above 2 nor be waited for without a run loop.
package enum ChildProcess {
    /// A system call that failed, with what it was to do.
    package struct Failure: Error, CustomStringConvertible {
        let action: String
        let code: CInt
        package var description: String { "cannot \(action): \(String(cString: strerror(code)))" }
    }

    /// Starts a program, in a process group of its own unless it is to share ours.
    ///
    /// The child gets the default action for the signals in `resetting` and an empty signal mask: threads of a
    /// concurrency runtime may block `SIGTERM`, and a server that inherits that mask could not be told to end.
    ///
    /// - Parameters:
    ///   - command: an absolute path and the arguments that follow the program's name.
    ///   - descriptors: for each descriptor of the child, ours that it becomes. 0, 1 and 2 are `/dev/null` unless given.
    /// - Returns: the process id, which is also the id of a group of its own. ``reap(_:)`` it.
    package static func spawn(
        _ command: [String], descriptors: [CInt: CInt],
        environment: [String: String] = ProcessInfo.processInfo.environment, sharesGroup: Bool = false,
        resetting: [CInt] = [SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD]
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
        let variables = environment.map { "\($0.key)=\($0.value)" }
        let code = withCStrings(command) { arguments in
            withCStrings(variables) { posix_spawn(&process, command[0], &actions, &attributes, arguments, $0) }
        }
        guard code == 0 else { throw Failure(action: "start \(command[0])", code: code) }
        return process
    }

    #if !canImport(Darwin)
        /// Closes every descriptor of the child from a number on.
        ///
        /// Those that are open to be inherited are many: SwiftNIO's own sockets are. A server that had inherited a client's
        /// connection would keep it open after the client has closed it.
        private static func closeOthers(from first: CInt, _ actions: inout posix_spawn_file_actions_t) {
            // Looked up by name, because glibc has it since 2.34 only and musl has not.
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

    /// Waits until the child has ended and takes its status, so that no zombie stays. Blocks the thread.
    ///
    /// - Returns: the exit status, or nil if a signal ended it.
    @discardableResult
    static func reap(_ process: pid_t) -> CInt? {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            // ECHILD: this program ignores SIGCHLD, so the kernel has taken the status away; the child has ended.
            guard errno == EINTR else { return nil }
        }
        return status & 0x7f == 0 ? (status >> 8) & 0xff : nil
    }

    /// Runs a tool to its end and returns its status and everything it wrote to standard output and error.
    static func run(_ command: [String]) async throws -> (status: CInt?, output: String) {
        try await onThreadOfItsOwn {
            let output = try ChildPipe()
            let process = try spawn(command, descriptors: [1: output.writeEnd, 2: output.writeEnd])
            output.closeWriteEnd()
            let text = output.readToEnd()
            return (reap(process), text)
        }
    }

    /// Runs a body that blocks on a thread that nobody else waits for.
    static func onThreadOfItsOwn<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
        }
    }

    /// Calls the body with a null-terminated array of C strings.
    private static func withCStrings<R>(
        _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R
    ) -> R {
        let copies = strings.map { strdup($0) }
        defer { copies.forEach { free($0) } }
        return body(copies + [nil])
    }
}
