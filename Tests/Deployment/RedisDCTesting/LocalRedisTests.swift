import Foundation
import TestSupport
import Testing

@testable import RedisDCTesting
@testable import RedisDCTestingTestSupport

@Suite("LocalRedis: a running server")
struct LocalRedisTests {
    @Test("a server replies on its port and on its Unix socket when start returns")
    func answers() async throws {
        try await withLocalRedis { redis in
            let answers = try await [
                Wire.ask(port: redis.port, "PING"), Wire.ask(path: redis.socketPath, "PING"),
            ]
            #expect(answers == ["+PONG", "+PONG"])
            #expect(redis.url == "redis://127.0.0.1:\(redis.port)")
            #expect(redis.unixURL == "unix://\(redis.socketPath)")
            #expect(redis.tlsPort == nil && redis.tlsURL == nil)
            #expect(redis.log.contains("Ready to accept connections"))
        }
    }

    @Test("processID is the process ID of the server")
    func processID() async throws {
        try await withLocalRedis { redis in
            let info = try await Wire.ask(port: redis.port, "INFO", "server")
            #expect(info.contains("process_id:\(try #require(redis.processID))\r\n"))
        }
    }

    @Test("a server listens only on loopback, and its folder is accessible only to this user")
    func isPrivate() async throws {
        try await withLocalRedis { redis in
            #expect(try await Wire.ask(port: redis.port, "CONFIG", "GET", "bind") == "bind 127.0.0.1")
            let attributes = try FileManager.default.attributesOfItem(atPath: redis.directory)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
            #expect(redis.socketPath.utf8.count < 104)
        }
    }

    @Test("a server writes nothing to disk by default")
    func keepsNothing() async throws {
        try await withLocalRedis { redis in
            let wire = try Wire(port: redis.port)
            #expect(try await wire.ask("CONFIG", "GET", "save") == "save ")
            #expect(try await wire.ask("CONFIG", "GET", "appendonly") == "appendonly no")
            _ = try await wire.ask("SET", "key", "value")
            try await redis.restart()
            #expect(try await Wire.ask(port: redis.port, "GET", "key") == "nil")
        }
    }

    @Test("a server allows the DEBUG command")
    func allowsDebug() async throws {
        try await withLocalRedis { redis in
            let answer = try await Wire.ask(port: redis.port, "DEBUG", "SLEEP", "0")
            #expect(answer == "+OK")
        }
    }

    @Test("extra configuration lines override the generated ones")
    func extraLines() async throws {
        try await withLocalRedis(.init(extra: ["maxclients 20", "appendonly yes"])) { redis in
            let wire = try Wire(port: redis.port)
            #expect(try await wire.ask("CONFIG", "GET", "maxclients") == "maxclients 20")
            #expect(try await wire.ask("CONFIG", "GET", "appendonly") == "appendonly yes")
        }
    }

    @Test("a server requires its password, which may contain any character")
    func password() async throws {
        let password = "a \"b\\ ü:@/"
        try await withLocalRedis(.init(password: password)) { redis in
            let wire = try Wire(port: redis.port)
            #expect(try await wire.ask("PING").hasPrefix("-NOAUTH"))
            #expect(try await wire.ask("AUTH", password) == "+OK")
            #expect(redis.url == "redis://:a%20%22b%5C%20%C3%BC%3A%40%2F@127.0.0.1:\(redis.port)")
        }
    }

    @Test("a server has the configured ACL users")
    func aclUsers() async throws {
        let users = ["alice on >secret ~a:* &* +@all -flushall", "default off"]
        try await withLocalRedis(.init(aclUsers: users)) { redis in
            let wire = try Wire(port: redis.port)
            #expect(try await wire.ask("PING").hasPrefix("-NOAUTH"))
            #expect(try await wire.ask("AUTH", "alice", "secret") == "+OK")
            #expect(try await wire.ask("SET", "a:1", "x") == "+OK")
            #expect(try await wire.ask("SET", "b:1", "x").hasPrefix("-NOPERM"))
        }
    }

    @Test("concurrent servers have different ports")
    func manyAtOnce() async throws {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...8 {
                group.addTask {
                    try await withLocalRedis { redis in
                        let wire = try Wire(port: redis.port)
                        _ = try await wire.ask("SET", "number", "\(number)")
                        #expect(try await wire.ask("GET", "number") == "\(number)")
                        return redis.port
                    }
                }
            }
            let ports = try await group.reduce(into: []) { $0.append($1) }
            #expect(ports.count == 8)
        }
    }
}

@Suite("LocalRedis: a server that cannot start")
struct LocalRedisFailureTests {
    @Test("the error names the package to install if no server is installed")
    func noServer() async throws {
        #expect(ServerProgram.find(environment: ["PATH": "/nonexistent"]) == nil)
        let error = LocalRedisError.serverNotFound(nil)
        #expect(error.description.contains("apt install redis-server"))
        #expect(error.description.contains("brew install redis"))
    }

    @Test("the environment variable names the server of a configuration that names none")
    func variable() async throws {
        let folder = try TemporaryFolder(prefix: "programs")
        defer { folder.remove() }
        let server = try await makeProgram("exit 1", in: folder)
        let name = URL(fileURLWithPath: server).lastPathComponent
        let search = ["PATH": folder.path]
        func with(_ value: String) -> [String: String] { search.merging(["REDISDC_TEST_SERVER": value]) { $1 } }
        #expect(ServerProgram.find(environment: with(server)) == server)
        #expect(ServerProgram.find(environment: with(name)) == server)
        #expect(ServerProgram.find("/bin/sh", environment: with(server)) == "/bin/sh")
        // The installed server must not stand in for the one that was asked for.
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        #expect(ServerProgram.find(environment: ["PATH": path, "REDISDC_TEST_SERVER": "/nonexistent"]) == nil)
        #expect(ServerProgram.find(environment: ["PATH": path, "REDISDC_TEST_SERVER": ""]) != nil)
    }

    @Test("the error names the configured program if it does not exist")
    func noSuchProgram() async throws {
        let error = await #expect(throws: LocalRedisError.self) {
            try await LocalRedis.start(.init(binary: "no-such-server"))
        }
        #expect(error?.code == .serverNotFound)
        #expect(error?.description.contains("no-such-server") == true)
    }

    @Test("the error contains the server's log after a bad configuration")
    func badConfiguration() async throws {
        let error = await #expect(throws: LocalRedisError.self) {
            try await LocalRedis.start(.init(extra: ["no-such-directive yes"]))
        }
        #expect(error?.code == .startFailed)
        #expect(error?.description.contains("no-such-directive") == true)
    }

    @Test("the start fails after the start timeout and leaves no process")
    func timeout() async throws {
        let folder = try TemporaryFolder(prefix: "mute-server")
        defer { folder.remove() }
        // A server that never replies: it writes its process ID to a file and waits.
        let server = try await makeProgram("echo $$ >\(folder.file("pid")); exec sleep 60", in: folder)
        // Until the time is long enough for the program to get so far.
        var (limit, started) = (Duration.milliseconds(300), Int32?.none)
        while started == nil {
            let error = await #expect(throws: LocalRedisError.self) {
                try await LocalRedis.start(.init(binary: server, startTimeout: limit))
            }
            try #require(error?.code == .startTimedOut)
            started = Int32(((try? String(contentsOfFile: folder.file("pid"), encoding: .utf8)) ?? "").dropLast())
            limit *= 2
        }
        #expect(try !processExists(#require(started)))
    }

    @Test("cancelling the task ends the start")
    func cancellation() async throws {
        let folder = try TemporaryFolder(prefix: "mute-server")
        defer { folder.remove() }
        let server = try await makeProgram("exec sleep 60", in: folder)
        let start = Task { try await LocalRedis.start(.init(binary: server)) }
        start.cancel()
        await #expect(throws: CancellationError.self) { try await start.value }
    }

    @Test("a launch reports that another process uses its port")
    func portTaken() async throws {
        try await withLocalRedis { first in
            let folder = try TemporaryFolder(prefix: "port-taken")
            defer { folder.remove() }
            let launch = ServerLaunch(
                binary: try #require(ServerProgram.find()), configuration: .init(),
                endpoints: ServerEndpoints(
                    port: first.port, tlsPort: nil, socketPath: folder.file(ServerLaunch.socketName)),
                folder: folder, log: ServerLog(path: folder.file("server.log")), allowsDebug: false)
            await #expect {
                try await launch.run()
            } throws: { error in
                if case ServerLaunch.Failure.portTaken = error { true } else { false }
            }
        }
    }

    @Test(
        "a server too old for enable-debug-command starts without it",
        .needs(setting: "enable-debug-command"))
    func oldServer() async throws {
        let folder = try TemporaryFolder(prefix: "old-server")
        defer { folder.remove() }
        let server = try #require(ServerProgram.find())
        let old = try await makeProgram(
            """
            if grep enable-debug-command "$1"; then echo "Bad directive"; exit 1; fi
            exec \(server) "$1"
            """, in: folder)
        try await withLocalRedis(.init(binary: old)) { redis in
            let wire = try Wire(port: redis.port)
            #expect(try await wire.ask("PING") == "+PONG")
            #expect(try await wire.ask("DEBUG", "SLEEP", "0").hasPrefix("-ERR"))
        }
    }
}
