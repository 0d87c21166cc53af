import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The steps of a login")
struct LoginStepsTests {
    private static let info = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
    private static let noAuth = "NOAUTH Authentication required."
    private static let noPerm = "NOPERM User bob has no permissions to run the command"

    private func configuration(
        password: String? = nil, user: String? = nil, database: Int = 0, name: String = "redisdc"
    ) -> RedisConfiguration {
        var configuration = RedisConfiguration(endpoint: .tcp(host: "redis.example", port: 6379))
        configuration.credentials = password.map { .init(username: user, password: $0) }
        configuration.database = database
        configuration.clientName = name
        return configuration
    }

    /// Replies to each step according to the first words of its command.
    private func login(
        _ configuration: RedisConfiguration, _ role: RedisConnection.Role = .command,
        answers: [String: RESPValue] = [:], otherwise: RESPValue? = nil
    ) throws(RedisError) -> RedisConnection.Login {
        let usual: [String: RESPValue] = [
            "INFO": .bytes(Array(Self.info.utf8)), "CLIENT ID": .integer(42), "CLIENT UNBLOCK": .integer(0),
            "PING": .status("PONG"),
        ]
        let steps = LoginSteps(configuration: configuration, role: role)
        return try steps.read(
            steps.commands.map { command in
                let words = command.words
                let names = [words.prefix(2).joined(separator: " "), words[0]]
                return names.lazy.compactMap { answers[$0] }.first ?? otherwise
                    ?? names.lazy.compactMap { usual[$0] }.first ?? .status("OK")
            })
    }

    private func loginError(
        _ configuration: RedisConfiguration, _ role: RedisConnection.Role = .command,
        answers: [String: RESPValue] = [:], otherwise: RESPValue? = nil
    ) -> RedisError? {
        do throws(RedisError) {
            _ = try login(configuration, role, answers: answers, otherwise: otherwise)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Commands

    @Test("a login sends only the configured commands, AUTH first")
    func commands() {
        func sent(_ configuration: RedisConfiguration, _ role: RedisConnection.Role) -> [String] {
            LoginSteps(configuration: configuration, role: role).commands.map { $0.words.joined(separator: " ") }
        }
        #expect(sent(configuration(name: ""), .command) == ["INFO server", "PING"])
        #expect(
            sent(configuration(password: "secret", database: 3), .command)
                == ["AUTH secret", "CLIENT SETNAME redisdc", "SELECT 3", "INFO server", "PING"])
        #expect(
            sent(configuration(password: "secret", user: "bob"), .lane)
                == [
                    "AUTH bob secret", "CLIENT SETNAME redisdc", "INFO server", "CLIENT ID", "CLIENT UNBLOCK 0", "PING",
                ])
        #expect(sent(configuration(), .dedicated) == sent(configuration(), .command))
    }

    // MARK: Results

    @Test("a login returns the server version and, for a lane, how to interrupt it")
    func learned() throws {
        let command = try login(configuration())
        #expect(command.serverVersion == ServerVersion(7, 0, 15))
        #expect(command.interruptibleID == nil)
        #expect(try login(configuration(), .lane).interruptibleID == 42)
    }

    @Test("a user without permissions logs in, without the version")
    func noPermissions() throws {
        for role in [RedisConnection.Role.command, .lane] {
            let learned = try login(
                configuration(password: "secret", user: "bob"), role, answers: ["AUTH": .status("OK")],
                otherwise: .error(Self.noPerm))
            #expect(learned.serverVersion == nil)
            #expect(learned.interruptibleID == nil)
        }
    }

    @Test(
        "a lane can be interrupted only with the permissions for CLIENT ID and CLIENT UNBLOCK",
        arguments: ["CLIENT ID", "CLIENT UNBLOCK"])
    func noInterruption(forbidden: String) throws {
        let learned = try login(configuration(), .lane, answers: [forbidden: .error(Self.noPerm)])
        #expect(learned.interruptibleID == nil)
        #expect(learned.serverVersion == ServerVersion(7, 0, 15))
    }

    // MARK: Failures

    @Test("a wrong password fails with .authenticationFailed, and the error does not contain it")
    func wrongPassword() {
        let error = loginError(
            configuration(password: "hunter2", user: "bob"),
            answers: ["AUTH": .error("WRONGPASS invalid username-password pair or user is disabled.")],
            otherwise: .error(Self.noAuth))
        #expect(error?.code == .authenticationFailed)
        #expect(error?.message.contains("WRONGPASS") == true)
        #expect(error?.message.contains("redis.example:6379") == true)
        #expect("\(error as Any)".contains("hunter2") == false)
    }

    @Test("a password for a server without one fails with .authenticationFailed")
    func needlessPassword() {
        let text = "ERR AUTH <password> called without any password configured for the default user."
        #expect(
            loginError(configuration(password: "x"), answers: ["AUTH": .error(text)])?.code == .authenticationFailed)
    }

    @Test("a missing password fails with an error that says where to configure it")
    func noPassword() {
        let error = loginError(configuration(), otherwise: .error(Self.noAuth))
        #expect(error?.code == .authenticationFailed)
        #expect(error?.message.contains("redis://user:password@host") == true)
    }

    @Test("an unknown database fails with the server's error")
    func noDatabase() {
        let error = loginError(configuration(database: 99), answers: ["SELECT": .error("ERR DB index is out of range")])
        #expect(error?.code == .serverError)
        #expect(error?.message == "ERR DB index is out of range")
        #expect(error?.command == "SELECT")
    }

    @Test("a login fails if the user may not SELECT the database")
    func noSelect() {
        #expect(
            loginError(configuration(database: 2), answers: ["SELECT": .error(Self.noPerm)])?.code == .notPermitted)
    }

    @Test(
        "a server that is not ready fails the login with .serverNotReady",
        arguments: [
            "LOADING Redis is loading the dataset in memory",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "BUSY Redis is busy running a script.",
        ])
    func notReady(text: String) {
        #expect(loginError(configuration(), answers: ["PING": .error(text)])?.code == .serverNotReady)
        #expect(loginError(configuration(), otherwise: .error(text))?.code == .serverNotReady)
    }

    @Test(
        "a server older than 6.2 is refused",
        arguments: [("6.0.16", false), ("6.2.0", true), ("5.0", false), ("7.4.1", true)])
    func version(version: String, isSupported: Bool) {
        let error = loginError(
            configuration(), answers: ["INFO": .bytes(Array("# Server\r\nredis_version:\(version)\r\n".utf8))])
        #expect((error == nil) == isSupported)
        if let error {
            #expect(error.code == .unsupportedServer)
            #expect(error.message.contains("6.2"))
        }
    }

    @Test("a login succeeds if the server refuses the client name")
    func noName() throws {
        #expect(try login(configuration(), answers: ["CLIENT SETNAME": .error(Self.noPerm)]).serverVersion != nil)
    }

    @Test(
        "an INFO reply without a version leaves the version unknown",
        arguments: [RESPValue.bytes([0xFF]), .null, .status("# Server")])
    func noVersion(info: RESPValue) throws {
        #expect(try login(configuration(), answers: ["INFO": info]).serverVersion == nil)
    }
}

@Suite("The version of a server")
struct ServerVersionTests {
    @Test(
        "the version is read from INFO",
        arguments: [
            ("redis_version:7.0.15\r\n", ServerVersion(7, 0, 15)),
            ("# Server\r\nredis_version:6.2.14\r\nredis_git_sha1:0\r\n", ServerVersion(6, 2, 14)),
            ("# Server\nredis_version:8.0\nx:1\n", ServerVersion(8, 0, 0)),
            ("redis_version:255.255.255\r\n", ServerVersion(255, 255, 255)),
            ("redis_version:7\r\n", ServerVersion(7, 0, 0)),
            (
                "# Server\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\nredis_version:7.2.4\r\n",
                ServerVersion(7, 2, 4)
            ),
        ])
    func read(info: String, version: ServerVersion) {
        #expect(ServerVersion(info: info) == version)
    }

    @Test("a version missing from INFO is unknown", arguments: ["", "# Server\r\n", "xredis_version:7.0.0\r\n"])
    func unknown(info: String) {
        #expect(ServerVersion(info: info) == nil)
    }

    @Test("versions are compared by number, not by character")
    func order() {
        let sorted = [(6, 2, 0), (6, 2, 10), (6, 10, 1), (7, 0, 0), (10, 0, 0)].map { ServerVersion($0.0, $0.1, $0.2) }
        for (left, right) in zip(sorted, sorted.dropFirst()) {
            #expect(left < right)
            #expect(!(right < left))
        }
        #expect(!(sorted[0] < sorted[0]))
        #expect("\(ServerVersion(6, 2))" == "6.2.0")
    }
}

extension RedisCommand {
    fileprivate var words: [String] {
        arguments.map { argument in
            switch argument {
            case .string(let text): text
            case .integer(let value): "\(value)"
            case .bytes, .buffer: "?"
            }
        }
    }
}

@Suite("The role of a server at login")
struct LoginRoleTests {
    private func login(role: RESPValue) throws(RedisError) {
        let steps = LoginSteps(
            configuration: RedisConfiguration(endpoint: .tcp(host: "redis.example", port: 6379)), role: .command,
            mustBeMaster: true)
        _ = try steps.read(steps.commands.map { $0.name == "ROLE" ? role : .status("OK") })
    }

    @Test("a master is accepted")
    func master() throws {
        try login(role: .array([.bytes(Array("master".utf8)), .integer(0), .array([])]))
    }

    @Test("a replica and a sentinel are refused as not ready", arguments: ["slave", "sentinel"])
    func others(role: String) {
        do throws(RedisError) {
            try login(role: .array([.bytes(Array(role.utf8))]))
            Issue.record("a \(role) was accepted")
        } catch {
            #expect(error.code == .serverNotReady && error.message.contains(role))
        }
    }

    @Test("a user without the right to ask for the role is accepted")
    func notPermitted() throws {
        try login(role: .error("NOPERM this user has no permissions to run the 'role' command"))
    }
}
