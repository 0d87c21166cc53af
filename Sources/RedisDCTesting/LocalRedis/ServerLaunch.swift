import Foundation

/// One attempt to start a server in a folder, until it replies.
struct ServerLaunch {
    /// The reason why an attempt failed.
    enum Failure: Error {
        /// Another process uses the port.
        case portTaken
        /// The server is too old to know `enable-debug-command`.
        case debugUnknown
        /// Any other failure.
        case other(LocalRedisError)
    }

    static let socketName = "redis.sock"
    static let configName = "redis.conf"

    let binary: String
    let configuration: LocalRedis.Configuration
    let endpoints: ServerEndpoints
    let folder: TemporaryFolder
    let log: ServerLog
    let allowsDebug: Bool

    func run() async throws -> LeashedProcess {
        let file = ServerConfigFile(
            configuration: self.configuration, endpoints: self.endpoints, directory: self.folder.path,
            allowsDebug: self.allowsDebug)
        if !self.configuration.keepsConfigFile || !self.folder.has(Self.configName) {
            try self.folder.write(file.text, to: Self.configName)
        }
        var command = [self.binary, self.folder.file(Self.configName)]
        if self.configuration.kind == .sentinel { command.append("--sentinel") }
        let before = self.log.size
        let process = try await LeashedProcess.start(command, log: self.log.path, folder: self.folder.path)
        do {
            try await self.waitUntilReady(process, logFrom: before)
            return process
        } catch {
            process.send(SIGKILL)
            await process.ended()
            throw error
        }
    }

    private func waitUntilReady(_ process: LeashedProcess, logFrom start: Int) async throws {
        let clock = ContinuousClock()
        let deadline = clock.now + self.configuration.startTimeout
        let probe = ReadinessProbe(socketPath: self.endpoints.socketPath, password: self.configuration.password)
        while true {
            // Checked before each probe, so that the exit of the server ends the wait.
            if process.hasEnded { throw self.failure(logFrom: start) }
            switch await probe.ask(within: deadline - clock.now) {
            case .ready: return
            case .loading: if !self.configuration.waitUntilLoaded { return }
            case .silent: break
            }
            if clock.now >= deadline {
                throw Failure.other(
                    LocalRedisError(
                        .startTimedOut,
                        """
                        cannot start \(self.binary): it did not reply within \(self.configuration.startTimeout); \
                        increase startTimeout, or see the end of its log:
                        \(self.log.tail(from: start))
                        """))
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    private func failure(logFrom start: Int) -> Failure {
        let text = self.log.text(from: start)
        if text.contains("Failed listening on port") || text.contains("Address already in use") { return .portTaken }
        if self.allowsDebug, text.contains("enable-debug-command") { return .debugUnknown }
        return .other(
            LocalRedisError(
                .startFailed,
                "cannot start \(self.binary): it exited before it replied; see the end of its log:\n"
                    + self.log.tail(from: start)))
    }
}
