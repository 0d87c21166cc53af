import Foundation
import Testing

@testable import RedisDCTesting

@Suite("The leash of a local server")
struct LeashTests {
    #if compiler(>=6.2)
        @Test("ends the server and removes its folder when the process that started it is killed with -9")
        func parentKilled() async throws {
            let result = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
                let redis = try await LocalRedis.start()
                try announce(redis)
                kill(getpid(), SIGKILL)
            }
            try await expectGone(result?.standardOutputContent)
        }

        @Test("ends a paused server too")
        func parentKilledWhilePaused() async throws {
            let result = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
                let redis = try await LocalRedis.start()
                try await redis.pause()
                try announce(redis)
                kill(getpid(), SIGKILL)
            }
            try await expectGone(result?.standardOutputContent)
        }

        @Test("ends every server of a process, those too that others were started after")
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

        @Test("ends the server when the process that started it just exits")
        func parentExits() async throws {
            let result = await #expect(processExitsWith: .exitCode(7), observing: [\.standardOutputContent]) {
                let redis = try await LocalRedis.start()
                try announce(redis)
                exit(7)
            }
            try await expectGone(result?.standardOutputContent)
        }

        /// In a process of its own: the other tests open descriptors at the same time.
        @Test("does not leak descriptors")
        func descriptors() async throws {
            await #expect(processExitsWith: .success) {
                func openDescriptors() -> Int { (0..<4096).count { fcntl($0, F_GETFD) >= 0 } }
                // What is opened once for the whole process is not what this is about.
                try await withLocalRedis { _ in }
                let before = openDescriptors()
                for _ in 1...20 { try await withLocalRedis { _ in } }
                let isBack = await eventually { openDescriptors() <= before }
                exit(isBack ? EXIT_SUCCESS : EXIT_FAILURE)
            }
        }
    #endif

    @Test("is not cut by the end of the thread that started the server")
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

    @Test("is cut when nobody holds the server any more")
    func dropped() async throws {
        var redis: LocalRedis? = try await LocalRedis.start()
        let process = try #require(redis?.processID)
        let folder = try #require(redis?.directory)
        redis = nil
        #expect(await eventually { !processExists(process) && !FileManager.default.fileExists(atPath: folder) })
    }

    @Test("leaves no process of the server's group, nor a zombie of ours")
    func leavesNothing() async throws {
        let redis = try await LocalRedis.start()
        let shell = getpgid(try #require(redis.processID))
        #expect(processExists(shell))
        await redis.stop()
        #expect(!processExists(shell))
        #expect(kill(-shell, 0) < 0 && errno == ESRCH)
    }

    @Test("gives the server no descriptor of this process")
    func inheritsNothing() async throws {
        // One that would be inherited, as a library's socket may be.
        let descriptor = open("/dev/null", O_RDONLY)
        let high = fcntl(descriptor, F_DUPFD, 200)
        defer { [descriptor, high].forEach { close($0) } }
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

/// Tells the parent of an exit test about a server.
private func announce(_ redis: LocalRedis) throws {
    let line = "server \(redis.processID ?? 0) \(redis.directory)\n"
    try FileHandle.standardOutput.write(contentsOf: Data(line.utf8))
}

/// Expects that the announced servers end and that their folders go.
private func expectGone(_ output: [UInt8]?, servers: Int = 1) async throws {
    let lines = String(decoding: try #require(output), as: UTF8.self).split(separator: "\n")
        .filter { $0.hasPrefix("server ") }
        .map { $0.split(separator: " ") }
    #expect(lines.count == servers)
    for line in lines {
        let process = try #require(Int32(line[1]))
        #expect(process > 1)
        #expect(await eventually { !processExists(process) }, "the server lives on")
        #expect(await eventually { !FileManager.default.fileExists(atPath: String(line[2])) }, "its folder is there")
    }
}
