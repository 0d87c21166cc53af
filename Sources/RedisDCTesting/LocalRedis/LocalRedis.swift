import Foundation
import NIOConcurrencyHelpers

/// A private Redis or Valkey server for a test: its own port, its own folder, its own death.
///
/// ```swift
/// try await withLocalRedis { redis in
///     let client = try RedisClient(redis.url)
///     // ...
///     await redis.kill()              // as if its machine had lost power
///     try await redis.restart()       // the same address, the same data
/// }
/// ```
///
/// Starting takes some tens of milliseconds, so that each test can have a server to itself.
///
/// **What it guarantees**
/// - It listens on 127.0.0.1 and on a Unix socket in a folder that only this user can enter, and nowhere else. The
///   addresses stay the same over ``restart()``.
/// - It ends with the process that started it, however that one ends, `kill -9` and a paused server included, and its
///   folder is removed then. No zombie stays behind.
/// - It inherits nothing: no socket or file of this process stays open because a server has it.
/// - Each operation returns when what it does has happened: the server has ended, has stopped, answers.
///
/// **What it does not**
/// - ``kill()`` ends the server, not the machine: bytes that the kernel had are on disk after it.
/// - The folder of a server that was down when the process that started it was killed stays.
///
/// Operations may be called from any task. Two at a time make sense only if one of them is ``stop()``, which wins.
public final class LocalRedis: Sendable {
    private struct State {
        var process: LeashedProcess?
        var isStopped = false
    }

    /// The TCP port on 127.0.0.1.
    public var port: Int { self.endpoints.port }
    /// The TLS port, if the server was configured with certificates. Those of kind ``TestCertificates/Kind/good`` are
    /// for `localhost` and 127.0.0.1.
    public var tlsPort: Int? { self.endpoints.tlsPort }
    /// The path of the Unix socket.
    public var socketPath: String { self.endpoints.socketPath }
    /// The server's folder: its data, its configuration file, its log.
    public var directory: String { self.folder.path }

    private let binary: String
    let configuration: Configuration
    private let endpoints: ServerEndpoints
    private let folder: TemporaryFolder
    private let serverLog: ServerLog
    private let allowsDebug: Bool
    private let state: NIOLockedValueBox<State>

    private init(_ launch: ServerLaunch, process: LeashedProcess) {
        self.binary = launch.binary
        self.configuration = launch.configuration
        self.endpoints = launch.endpoints
        self.folder = launch.folder
        self.serverLog = launch.log
        self.allowsDebug = launch.allowsDebug
        self.state = NIOLockedValueBox(State(process: process))
    }

    deinit {
        self.folder.remove()
    }

    /// Starts a server and returns when it answers. ``stop()`` it; ``withLocalRedis(_:body:)`` does so by itself.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/serverNotFound``,
    ///   ``LocalRedisError/Code/startFailed`` or ``LocalRedisError/Code/startTimedOut``; `CancellationError`.
    public static func start(_ configuration: Configuration = Configuration()) async throws -> LocalRedis {
        let names = configuration.binary.map { [$0] } ?? ["redis-server", "valkey-server"]
        guard let binary = Executable.find(names) else {
            throw LocalRedisError.serverNotFound(configuration.binary)
        }
        let folder = try TemporaryFolder(prefix: "local-redis")
        do {
            return try await self.start(configuration, binary: binary, folder: folder)
        } catch {
            folder.remove()
            throw error
        }
    }

    /// Tries other ports while those that were picked turn out to be taken.
    private static func start(
        _ configuration: Configuration, binary: String, folder: TemporaryFolder
    ) async throws -> LocalRedis {
        var allowsDebug = true
        for _ in 1...20 {
            let launch = ServerLaunch(
                binary: binary, configuration: configuration,
                endpoints: .random(
                    withTLS: configuration.tls != nil, socketPath: folder.file(ServerLaunch.socketName)),
                folder: folder, log: ServerLog(path: folder.file("server.log")), allowsDebug: allowsDebug)
            do {
                return LocalRedis(launch, process: try await launch.run())
            } catch ServerLaunch.Failure.portTaken {
                continue
            } catch ServerLaunch.Failure.debugUnknown {
                allowsDebug = false
            } catch ServerLaunch.Failure.other(let error) {
                throw error
            }
        }
        throw LocalRedisError(
            .startFailed, "The server \(binary) could not listen on any of 20 ports between 20000 and 31999: free some."
        )
    }

    /// The server's process id, or nil while it does not run.
    public var processID: Int32? { self.running?.processID }

    /// Everything the server has printed so far, over all restarts: for the message of a failed test.
    public var log: String { self.serverLog.text() }

    /// Ends the server and removes its folder. Calling it again does nothing.
    ///
    /// The server is asked with `SIGTERM` and killed if it has not ended two seconds later. Cancelling the task does not
    /// shorten that.
    public func stop() async {
        let process = self.state.withLockedValue { state in
            state.isStopped = true
            return state.process
        }
        if let process { await process.terminate(killAfter: .seconds(2)) }
        self.folder.remove()
    }

    /// Kills the server with `SIGKILL`, paused or not, and waits until it has ended. Its folder stays.
    ///
    /// It does nothing if the server does not run.
    public func kill() async {
        guard let process = self.running else { return }
        process.send(SIGKILL)
        await process.ended()
    }

    /// Ends the server gracefully with `SIGTERM` and waits until it has ended; its data stays for ``restart()``.
    ///
    /// A paused server is resumed for it. It does nothing if the server does not run.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut`` if the server, say because it cannot
    ///   write its snapshot, has not ended within 10 seconds; it has been killed then.
    public func shutdown() async throws {
        guard let process = self.running else { return }
        guard await process.terminate(killAfter: .seconds(10)) else {
            throw LocalRedisError(
                .timedOut,
                "The server did not shut down within 10 seconds and was killed; its log says why:\n"
                    + self.serverLog.tail(from: 0))
        }
    }

    /// Starts the server again with the same data and addresses, and returns when it answers.
    ///
    /// A server that still runs is ended with ``shutdown()`` first.
    ///
    /// - Throws: as ``start(_:)`` and ``shutdown()`` do, and ``LocalRedisError`` with the code
    ///   ``LocalRedisError/Code/stopped`` after ``stop()``.
    public func restart() async throws {
        try await self.shutdown()
        let launch = ServerLaunch(
            binary: self.binary, configuration: self.configuration, endpoints: self.endpoints, folder: self.folder,
            log: self.serverLog, allowsDebug: self.allowsDebug)
        let process: LeashedProcess
        do {
            try self.checkNotStopped()
            process = try await launch.run()
        } catch ServerLaunch.Failure.other(let error) {
            throw error
        } catch is ServerLaunch.Failure {
            throw LocalRedisError(
                .startFailed, "Another process took port \(self.port) while the server was down: start a new server.")
        }
        let isStopped = self.state.withLockedValue { state in
            if !state.isStopped { state.process = process }
            return state.isStopped
        }
        if isStopped {
            await process.terminate(killAfter: .zero)
            self.folder.remove()
        }
        try self.checkNotStopped()
    }

    /// Stops the server with `SIGSTOP` and returns when it has stopped: its sockets stay open and nobody answers.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/notRunning``; `CancellationError`.
    public func pause() async throws {
        try await self.send(SIGSTOP, untilStopped: true)
    }

    /// Lets a paused server go on with `SIGCONT`, and returns when it does.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/notRunning``; `CancellationError`.
    public func resume() async throws {
        try await self.send(SIGCONT, untilStopped: false)
    }

    private func send(_ signal: CInt, untilStopped: Bool) async throws {
        guard let process = self.running else {
            throw LocalRedisError(.notRunning, "The server does not run: restart() it first.")
        }
        process.send(signal)
        while !process.hasEnded, ProcessState.isStopped(process.processID) != untilStopped {
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private var running: LeashedProcess? {
        self.state.withLockedValue { state in
            state.process.flatMap { $0.hasEnded ? nil : $0 }
        }
    }

    private func checkNotStopped() throws {
        if self.state.withLockedValue({ $0.isStopped }) {
            throw LocalRedisError(.stopped, "The server's data is gone after stop(): start a new server.")
        }
    }
}

/// Runs a body with a private server, then ends the server and removes its folder, also when the body throws.
///
/// - Throws: what the body throws, and what ``LocalRedis/start(_:)`` does.
public func withLocalRedis<R>(
    _ configuration: LocalRedis.Configuration = LocalRedis.Configuration(),
    body: (LocalRedis) async throws -> R
) async throws -> R {
    let redis = try await LocalRedis.start(configuration)
    do {
        let result = try await body(redis)
        await redis.stop()
        return result
    } catch {
        await redis.stop()
        throw error
    }
}
