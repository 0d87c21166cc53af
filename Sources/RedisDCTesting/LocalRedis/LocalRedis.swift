import Foundation
import NIOConcurrencyHelpers

/// A private Redis or Valkey server for one test.
///
/// ```swift
/// try await withLocalRedis(.init(persistence: .appendOnly(fsync: .always))) { redis in
///     try await withRedisClient(url: redis.url) { client in
///         _ = try await client.send("SET", "key", "value")
///         await redis.kill()         // SIGKILL: the server cannot save its data
///         try await redis.restart()  // the same addresses, the same data
///         #expect(try await client.send("GET", "key").string == "value")
///     }
/// }
/// ```
///
/// A start takes some tens of milliseconds, so each test can have its own server.
///
/// **Guarantees**
/// - The server listens only on 127.0.0.1 and on a Unix socket in a folder that only this user can
///   enter. Its addresses do not change when it is restarted.
/// - The server ends when the process that started it ends, even if that process is killed with
///   `kill -9` or the server is paused. Its folder is removed then. No zombie process remains.
/// - The server inherits no socket or file of this process, so it keeps none of them open.
/// - Each operation returns after its effect: the server has exited, has stopped, or replies.
///
/// **Limits**
/// - ``kill()`` ends the server, not the machine: the disk receives the bytes that the kernel
///   holds.
/// - If the process is killed while the server is down, the server's folder is not removed.
///
/// All operations may be called from any task. Of two concurrent operations one must be ``stop()``,
/// which takes precedence.
public final class LocalRedis: Sendable {
    private struct State {
        var process: LeashedProcess?
        var isStopped = false
    }

    /// The TCP port on 127.0.0.1.
    public var port: Int { self.endpoints.port }
    /// The TLS port; nil if the server has no certificates.
    ///
    /// Certificates of the kind ``TestCertificates/Kind/good`` are valid for `localhost` and
    /// 127.0.0.1.
    public var tlsPort: Int? { self.endpoints.tlsPort }
    /// The path of the Unix socket.
    public var socketPath: String { self.endpoints.socketPath }
    /// The path of the server's folder, which contains its data, its configuration file and its
    /// log.
    public var directory: String { self.folder.path }

    private let binary: String
    let configuration: Configuration
    private let endpoints: ServerEndpoints
    private let reservations: [PortReservation]
    private let folder: TemporaryFolder
    private let serverLog: ServerLog
    private let allowsDebug: Bool
    private let state: NIOLockedValueBox<State>

    private init(_ launch: ServerLaunch, _ reservations: [PortReservation], process: LeashedProcess) {
        self.reservations = reservations
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

    /// Starts a server and returns when it replies.
    ///
    /// Call ``stop()`` when the server is no longer needed, or use ``withLocalRedis(_:body:)``,
    /// which does. If the start fails or the task is cancelled, no process and no folder remain.
    ///
    /// - Parameter configuration: the configuration of the server.
    /// - Returns: the running server.
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/serverNotFound``,
    ///   ``LocalRedisError/Code/startFailed`` or ``LocalRedisError/Code/startTimedOut``;
    ///   `CancellationError` if the task is cancelled; the error of the system if the server's folder
    ///   cannot be created.
    public static func start(_ configuration: Configuration = Configuration()) async throws -> LocalRedis {
        for _ in 1...20 {
            let port = Int.random(in: ServerEndpoints.ports)
            if let server = try await self.start(configuration, port: port) { return server }
        }
        throw LocalRedisError.noFreePorts
    }

    /// Starts a server on a port.
    ///
    /// - Returns: the running server, or nil if one of its ports is in use.
    static func start(_ configuration: Configuration, port: Int) async throws -> LocalRedis? {
        guard let reservation = PortReservation([port]) else { return nil }
        return try await self.start(configuration, port: port, reservation)
    }

    /// Starts a server on a port that is reserved already.
    static func start(
        _ configuration: Configuration, port: Int, _ reservation: PortReservation
    ) async throws -> LocalRedis? {
        guard let binary = ServerProgram.find(configuration.binary) else {
            throw LocalRedisError.serverNotFound(ServerProgram.chosen(configuration.binary))
        }
        let folder = try TemporaryFolder(prefix: "local-redis")
        do {
            for (name, text) in configuration.files { try folder.write(text, to: name) }
            if let server = try await self.start(configuration, port: port, reservation, binary, folder) {
                return server
            }
        } catch {
            folder.remove()
            throw error
        }
        folder.remove()
        return nil
    }

    private static func start(
        _ configuration: Configuration, port: Int, _ reservation: PortReservation, _ binary: String,
        _ folder: TemporaryFolder
    ) async throws -> LocalRedis? {
        let endpoints = ServerEndpoints(
            port: port, withTLS: configuration.tls != nil, socketPath: folder.file(ServerLaunch.socketName))
        var reservations = [reservation]
        if let tlsPort = endpoints.tlsPort {
            guard let another = PortReservation([tlsPort]) else { return nil }
            reservations.append(another)
        }
        var allowsDebug = true
        while true {
            let launch = ServerLaunch(
                binary: binary, configuration: configuration, endpoints: endpoints, folder: folder,
                log: ServerLog(path: folder.file("server.log")), allowsDebug: allowsDebug)
            do {
                return LocalRedis(launch, reservations, process: try await launch.run())
            } catch ServerLaunch.Failure.portTaken {
                return nil
            } catch ServerLaunch.Failure.debugUnknown {
                allowsDebug = false
                // A configuration that keeps its file would start with the same directive again.
                folder.remove(ServerLaunch.configName)
            } catch ServerLaunch.Failure.other(let error) {
                throw error
            }
        }
    }

    /// The process ID of the server; nil while the server is not running.
    public var processID: Int32? { self.running?.processID }

    /// The output of the server since its first start, for the message of a failed test.
    public var log: String { self.serverLog.text() }

    /// Ends the server and removes its folder.
    ///
    /// The server receives `SIGTERM`, and `SIGKILL` if it has not exited after two seconds.
    /// Cancelling the task does not shorten the wait. A second call has no effect.
    public func stop() async {
        let process = self.state.withLockedValue { state in
            state.isStopped = true
            return state.process
        }
        if let process { await process.terminate(killAfter: .seconds(2)) }
        self.folder.remove()
    }

    /// Kills the server with `SIGKILL`, even if it is paused, and waits until it has exited.
    ///
    /// The server's folder remains for ``restart()``. The method has no effect if the server is not
    /// running. Cancelling the task does not shorten the wait.
    public func kill() async {
        guard let process = self.running else { return }
        process.send(SIGKILL)
        await process.ended()
    }

    /// Shuts the server down with `SIGTERM` and waits until it has exited.
    ///
    /// The server's folder remains for ``restart()``. A paused server is resumed first. The method
    /// has no effect if the server is not running. Cancelling the task does not shorten the wait.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut`` if the server
    ///   has not exited within 10 seconds, for example because it cannot write its snapshot. The
    ///   server has then been killed.
    public func shutdown() async throws {
        guard let process = self.running else { return }
        guard await process.terminate(killAfter: .seconds(10)) else {
            throw LocalRedisError(
                .timedOut,
                "cannot shut down the server on port \(self.port): it did not exit within 10 seconds and was killed; "
                    + "see the end of its log:\n\(self.serverLog.tail(from: 0))")
        }
    }

    /// Starts the server again with the same data and addresses, and returns when it replies.
    ///
    /// A running server is first ended with ``shutdown()``.
    ///
    /// - Throws: the errors of ``start(_:)`` and ``shutdown()``; ``LocalRedisError`` with the code
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
                .startFailed,
                "cannot restart the server: another process has taken its port \(self.port); start a new server")
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

    /// Pauses the server with `SIGSTOP`, and returns when it has stopped.
    ///
    /// The server's sockets stay open, but it does not reply until ``resume()``.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/notRunning``;
    ///   `CancellationError` if the task is cancelled, in which case the signal has been sent.
    public func pause() async throws {
        try await self.send(SIGSTOP, untilStopped: true)
    }

    /// Resumes a paused server with `SIGCONT`, and returns when it has resumed.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/notRunning``;
    ///   `CancellationError` if the task is cancelled, in which case the signal has been sent.
    public func resume() async throws {
        try await self.send(SIGCONT, untilStopped: false)
    }

    private func send(_ signal: CInt, untilStopped: Bool) async throws {
        guard let process = self.running else {
            throw LocalRedisError(
                .notRunning,
                "cannot \(untilStopped ? "pause" : "resume") the server on port \(self.port): it is not running; "
                    + "call restart() first")
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
            throw LocalRedisError(
                .stopped,
                "cannot restart the server on port \(self.port): stop() has removed its data; start a new server")
        }
    }
}

/// Runs a body with a private server, and stops the server when the body returns or throws.
///
/// - Parameters:
///   - configuration: the configuration of the server.
///   - body: the code that uses the server. The server and its folder are removed when it ends.
/// - Returns: the result of the body.
/// - Throws: the errors of the body and of ``LocalRedis/start(_:)``.
@discardableResult
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
