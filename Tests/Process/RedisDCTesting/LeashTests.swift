import Foundation
import Testing

@testable import RedisDCTesting
@testable import RedisDCTestingTestSupport

@Suite("LocalRedis: the lifetime of a server and of its parent process")
struct LeashTests {
    #if compiler(>=6.2)
        @Test("the server ends and its folder is removed when its parent is killed with -9")
        func parentKilled() async throws {
            let result = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
                let redis = try await LocalRedis.start()
                try announce(redis)
                kill(getpid(), SIGKILL)
            }
            try await expectGone(result?.standardOutputContent)
        }

        @Test("a paused server ends when its parent is killed with -9")
        func parentKilledWhilePaused() async throws {
            let result = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
                let redis = try await LocalRedis.start()
                try await redis.pause()
                try announce(redis)
                kill(getpid(), SIGKILL)
            }
            try await expectGone(result?.standardOutputContent)
        }

        @Test("all servers end when their parent is killed with -9")
        func manyServers() async throws {
            let result = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
                let servers = [
                    try await LocalRedis.start(), try await LocalRedis.start(), try await LocalRedis.start(),
                ]
                for redis in servers { try announce(redis) }
                kill(getpid(), SIGKILL)
            }
            try await expectGone(result?.standardOutputContent, servers: 3)
        }

        @Test("the server ends when its parent exits")
        func parentExits() async throws {
            let result = await #expect(processExitsWith: .exitCode(7), observing: [\.standardOutputContent]) {
                let redis = try await LocalRedis.start()
                try announce(redis)
                exit(7)
            }
            try await expectGone(result?.standardOutputContent)
        }

        /// The test runs in its own process, because concurrent tests open descriptors.
        @Test("starting and stopping servers leaks no descriptors")
        func descriptors() async throws {
            await #expect(processExitsWith: .success) {
                func openDescriptors() -> Int { (0..<4096).count { fcntl($0, F_GETFD) >= 0 } }
                // Some descriptors are opened once and stay open for the whole process: those of the event loops with the
                // first server, and those of the runtime's timers with the first sleeps, whenever that is.
                try await withLocalRedis { _ in }
                let before = openDescriptors()
                for _ in 1...20 { try await withLocalRedis { _ in } }
                let isBack = await eventually { openDescriptors() < before + 20 }
                exit(isBack ? EXIT_SUCCESS : EXIT_FAILURE)
            }
        }
    #endif

    @Test("the server outlives the thread that started it")
    func threadEnds() async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Task<LocalRedis, any Error>.self)
        let thread = Thread {
            continuation.yield(Task { try await LocalRedis.start() })
        }
        thread.start()
        var starts = stream.makeAsyncIterator()
        let redis = try await #require(await starts.next()).value
        #expect(await eventually { thread.isFinished })
        #expect(try await Wire.ask(port: redis.port, "PING") == "+PONG")
        await redis.stop()
    }

    @Test("releasing the LocalRedis object ends the server and removes its folder")
    func dropped() async throws {
        var redis: LocalRedis? = try await LocalRedis.start()
        let process = try #require(redis?.processID)
        let folder = try #require(redis?.directory)
        redis = nil
        #expect(await eventually { !processExists(process) && !FileManager.default.fileExists(atPath: folder) })
    }

    @Test("stop leaves no process of the server's group and no zombie")
    func leavesNothing() async throws {
        let redis = try await LocalRedis.start()
        let shell = getpgid(try #require(redis.processID))
        #expect(processExists(shell))
        await redis.stop()
        #expect(!processExists(shell))
        #expect(kill(-shell, 0) < 0 && errno == ESRCH)
    }

    @Test("a child process inherits no descriptor")
    func inheritsNothing() async throws {
        // A descriptor without close-on-exec, as a library's socket may be.
        let descriptor = open("/dev/null", O_RDONLY)
        let high = fcntl(descriptor, F_DUPFD, 200)
        defer { for open in [descriptor, high] { close(open) } }
        let folder = try TemporaryFolder(prefix: "inherits-nothing")
        defer { folder.remove() }
        let script = "for fd in 3 4 5 6 7 8 9; do ( : <&$fd ) 2>/dev/null && echo $fd; done; ls /dev/fd/200; echo done"
        let log = ServerLog(path: folder.file("log"))
        let process = try await LeashedProcess.start(
            ["/bin/sh", "-c", script], log: log.path, folder: folder.file("none"))
        await process.ended()
        let lines = log.text().split(separator: "\n")
        #expect(lines.count == 2 && lines[0].contains("ls:") && lines[1] == "done", "\(log.text())")
    }
}

/// Reports a server to the parent of an exit test.
private func announce(_ redis: LocalRedis) throws {
    let line = "server \(redis.processID ?? 0) \(redis.directory)\n"
    try FileHandle.standardOutput.write(contentsOf: Data(line.utf8))
}

/// Expects that the reported servers end and that their folders are removed.
private func expectGone(_ output: [UInt8]?, servers: Int = 1) async throws {
    let lines = String(decoding: try #require(output), as: UTF8.self).split(separator: "\n")
        .filter { $0.hasPrefix("server ") }
        .map { $0.split(separator: " ") }
    #expect(lines.count == servers)
    for line in lines {
        let process = try #require(Int32(line[1]))
        #expect(process > 1)
        #expect(await eventually { !processExists(process) }, "the server is still running")
        #expect(await eventually { !FileManager.default.fileExists(atPath: String(line[2])) }, "the folder remains")
    }
}
