import Foundation
import TestSupport
import Testing

@testable import RedisDCTesting
@testable import RedisDCTestingTestSupport

@Suite("LocalRedis: stop, kill, restart and pause")
struct LocalRedisLifeTests {
    @Test("stop ends the process and removes the folder, and a second stop has no effect")
    func stop() async throws {
        let redis = try await LocalRedis.start()
        let process = try #require(redis.processID)
        await redis.stop()
        #expect(!processExists(process))
        #expect(!FileManager.default.fileExists(atPath: redis.directory))
        #expect(redis.processID == nil)
        await redis.stop()
        let error = await #expect(throws: LocalRedisError.self) { try await redis.restart() }
        #expect(error?.code == .stopped)
    }

    @Test("withLocalRedis stops the server when the body throws and when the task is cancelled")
    func scoped() async throws {
        struct Thrown: Error {
            let redis: LocalRedis
        }
        let scope = Task {
            try await withLocalRedis { redis in
                withUnsafeCurrentTask { $0?.cancel() }
                throw Thrown(redis: redis)
            }
        }
        let thrown = await #expect(throws: Thrown.self) { try await scope.value }
        let redis = try #require(thrown?.redis)
        #expect(redis.processID == nil)
        #expect(!FileManager.default.fileExists(atPath: redis.directory))
    }

    @Test("a process that ignores SIGTERM is killed")
    func stopStubborn() async throws {
        let folder = try TemporaryFolder(prefix: "stubborn-server")
        defer { folder.remove() }
        let log = folder.file("log")
        let process = try await LeashedProcess.start(
            ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 60; done"], log: log, folder: folder.path)
        #expect(await eventually { ServerLog(path: log).text() == "ready\n" })
        #expect(await process.terminate(killAfter: .milliseconds(100)) == false)
        #expect(!processExists(process.processID))
    }

    @Test("a killed server restarts with its append-only data and the same addresses")
    func killAndRestart() async throws {
        for fsync in [LocalRedis.Configuration.Fsync.always, .everySecond] {
            try await withLocalRedis(.init(persistence: .appendOnly(fsync: fsync), password: "p")) { redis in
                let wire = try Wire(port: redis.port)
                _ = try await wire.ask("AUTH", "p")
                for number in 1...100 { _ = try await wire.ask("RPUSH", "list", "\(number)") }
                // With "everysec" the server holds back its writes while an fsync is in progress.
                while try await !wire.ask("INFO", "persistence").contains("aof_buffer_length:0\r\n") {}
                let (process, socket, port) = (try #require(redis.processID), redis.socketPath, redis.port)

                await redis.kill()
                #expect(!processExists(process))
                #expect(redis.processID == nil)
                #expect(throws: Wire.Failure.self) { try Wire(port: port) }
                #expect(try await wire.everythingUntilEnd() == "")

                try await redis.restart()
                #expect(redis.port == port && redis.socketPath == socket)
                #expect(redis.processID != process)
                let again = try Wire(path: redis.socketPath)
                _ = try await again.ask("AUTH", "p")
                #expect(try await again.ask("LLEN", "list") == ":100")
            }
        }
    }

    @Test("the port of a server that is down is taken by no other one, and is free when the server is gone")
    func reservedPort() async throws {
        var port = 0
        try await withLocalRedis { redis in
            port = redis.port
            await redis.kill()
            #expect(try await LocalRedis.start(.init(), port: port) == nil)
            try await redis.restart()
        }
        // Another server may have taken it since, but only one.
        let reservation = PortReservation([port])
        #expect(PortReservation([port]) == nil)
        withExtendedLifetime(reservation) {}
    }

    /// A replica that was started before its master's port turned out to be another server's would replicate that one.
    @Test("of servers that are started together, none starts if the port of one is another server's")
    func takenTogether() async throws {
        let folder = try TemporaryFolder(prefix: "taken")
        defer { folder.remove() }
        let program = try await makeProgram(
            """
            touch '\(folder.file("started"))'
            exec '\(try #require(ServerProgram.find()))' "$@"
            """, in: folder)
        let other = LocalRedis.Configuration(binary: program)
        try await withLocalRedis { redis in
            let free = try #require(ServerEndpoints.distinct(2, in: ServerEndpoints.ports).first { $0 != redis.port })
            let started = try await startServers([(.init(), redis.port), (other, free)])
            #expect(started == nil && !folder.has("started"))
        }
        // The check can fail: this program leaves the file.
        let server = try await LocalRedis.start(other)
        await server.stop()
        #expect(folder.has("started"))
    }

    @Test("a shutdown saves a snapshot, and a kill loses the writes after the last SAVE")
    func snapshot() async throws {
        try await withLocalRedis(.init(persistence: .snapshot)) { redis in
            _ = try await Wire.ask(port: redis.port, "SET", "key", "1")
            try await redis.shutdown()
            #expect(redis.processID == nil)
            try await redis.restart()
            let wire = try Wire(port: redis.port)
            #expect(try await wire.ask("GET", "key") == "1")
            _ = try await wire.ask("SET", "key", "2")
            _ = try await wire.ask("SAVE")
            _ = try await wire.ask("SET", "key", "3")
            await redis.kill()
            try await redis.restart()
            #expect(try await Wire.ask(port: redis.port, "GET", "key") == "2")
        }
    }

    @Test("restart first shuts a running server down")
    func restartRunning() async throws {
        try await withLocalRedis(.init(persistence: .appendOnly(fsync: .always))) { redis in
            let process = try #require(redis.processID)
            _ = try await Wire.ask(port: redis.port, "SET", "key", "value")
            try await redis.restart()
            #expect(!processExists(process))
            #expect(try await Wire.ask(port: redis.port, "GET", "key") == "value")
        }
    }

    @Test("a server that exited on its own can be restarted")
    func endedByItself() async throws {
        try await withLocalRedis { redis in
            try await Wire(port: redis.port).send(Wire.command(["SHUTDOWN", "NOSAVE"]))
            #expect(await eventually { redis.processID == nil })
            await redis.kill()
            try await redis.shutdown()
            try await redis.restart()
            #expect(try await Wire.ask(port: redis.port, "PING") == "+PONG")
        }
    }

    @Test("a paused server does not reply until it is resumed")
    func pause() async throws {
        try await withLocalRedis { redis in
            let wire = try Wire(port: redis.port)
            #expect(try await wire.ask("PING") == "+PONG")
            try await redis.pause()
            #expect(ProcessState.isStopped(try #require(redis.processID)))
            try await wire.send("PING\r\n")
            // Connecting still succeeds, because the kernel accepts the connection.
            let other = try Wire(port: redis.port)
            try await other.send("PING\r\n")
            try await Task.sleep(for: .milliseconds(50))
            #expect(!wire.hasInput && !other.hasInput)
            try await redis.resume()
            #expect(try await wire.answer() == "+PONG")
            #expect(try await other.answer() == "+PONG")
        }
    }

    @Test("a paused server can be killed, shut down and stopped")
    func endPaused() async throws {
        try await withLocalRedis { redis in
            try await redis.pause()
            await redis.kill()
            try await redis.restart()
            try await redis.pause()
            try await redis.shutdown()
            try await redis.restart()
            try await redis.pause()
        }
    }

    @Test("pause and resume throw .notRunning when the server is not running")
    func notRunning() async throws {
        try await withLocalRedis { redis in
            await redis.kill()
            for operation in [redis.pause, redis.resume] {
                let error = await #expect(throws: LocalRedisError.self) { try await operation() }
                #expect(error?.code == .notRunning)
            }
        }
    }

    @Test(
        "a start waits until the data is loaded, unless waitUntilLoaded is false",
        .needs(setting: "loading-process-events-interval-bytes"), arguments: [true, false], [nil, "password"])
    func loading(wait: Bool, password: String?) async throws {
        // Loading takes a second. Without waiting, the question must come before its end, on a slow machine too: then it
        // takes 40 seconds, most of which nobody waits for.
        let (keys, delay) = wait ? (2000, 500) : (8000, 5000)
        let configuration = LocalRedis.Configuration(
            persistence: .snapshot, password: password,
            extra: ["key-load-delay \(delay)", "loading-process-events-interval-bytes 1024"], waitUntilLoaded: wait)
        try await withLocalRedis(configuration) { redis in
            let wire = try Wire(port: redis.port)
            if let password { #expect(try await wire.ask("AUTH", password) == "+OK") }
            #expect(try await wire.ask("DEBUG", "POPULATE", "\(keys)") == "+OK")
            #expect(try await wire.ask("SAVE") == "+OK")
            await redis.kill()
            try await redis.restart()
            let again = try Wire(port: redis.port)
            if let password { #expect(try await again.ask("AUTH", password) == "+OK") }
            let answer = try await again.ask("DBSIZE")
            if wait { #expect(answer == ":\(keys)") } else { #expect(answer.hasPrefix("-LOADING")) }
        }
    }
}
