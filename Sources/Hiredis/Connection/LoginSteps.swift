// What a new connection says first, and what the answers mean.
//
// All in one write. A user without rights to CLIENT and INFO may still use everything: those answers are then unknown.

/// The version of a server, compared by its numbers.
public struct ServerVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    public var major: Int
    public var minor: Int
    public var patch: Int

    public init(_ major: Int, _ minor: Int, _ patch: Int = 0) {
        self.major = major
        self.minor = minor
        self.patch = patch
    }

    /// Reads `redis_version:7.0.15` from the reply of INFO. Valkey reports the Redis version it is compatible with.
    init?(info: String) {
        guard let line = info.split(whereSeparator: \.isNewline).first(where: { $0.hasPrefix("redis_version:") }) else {
            return nil
        }
        let numbers = line.drop { $0 != ":" }.dropFirst().split(separator: ".").map { Int($0) ?? 0 }
        self.init(numbers.first ?? 0, numbers.count > 1 ? numbers[1] : 0, numbers.count > 2 ? numbers[2] : 0)
    }

    public var description: String { "\(major).\(minor).\(patch)" }

    public static func < (left: Self, right: Self) -> Bool {
        (left.major, left.minor, left.patch) < (right.major, right.minor, right.patch)
    }

    /// The least that is supported.
    public static let minimum = ServerVersion(6, 2)
}

struct LoginSteps {
    private enum Step { case auth, setName, select, info, clientID, probeUnblock, ping }

    private var steps: [Step] = []
    private(set) var commands: [RedisCommand] = []
    private let configuration: RedisConfiguration

    init(configuration: RedisConfiguration, role: RedisConnection.Role) {
        self.configuration = configuration
        if let credentials = configuration.credentials {
            let user = credentials.username.map { [RedisArgument($0)] } ?? []
            add(.auth, RedisCommand(["AUTH"] + user + [.string(credentials.password)]))
        }
        if !configuration.clientName.isEmpty {
            add(.setName, ["CLIENT", "SETNAME", .string(configuration.clientName)])
        }
        if configuration.database != 0 { add(.select, ["SELECT", .integer(configuration.database)]) }
        add(.info, ["INFO", "server"])
        if role == .lane {
            add(.clientID, ["CLIENT", "ID"])
            // There is no client 0: this only asks whether the user may.
            add(.probeUnblock, ["CLIENT", "UNBLOCK", "0"])
        }
        add(.ping, ["PING"])
    }

    private mutating func add(_ step: Step, _ command: RedisCommand) {
        steps.append(step)
        commands.append(command)
    }

    /// - Throws: `.authenticationFailed`, `.serverNotReady`, `.unsupportedServer`, `.serverError`.
    func read(_ replies: [RESPValue]) throws(RedisError) -> RedisConnection.Login {
        var login = RedisConnection.Login()
        var id: Int?
        var mayUnblock = false
        for (step, reply) in zip(steps, replies) {
            switch step {
            case .auth:
                if let message = reply.errorMessage { throw authenticationError(message) }
            case .select:
                _ = try reply.orThrow("SELECT")
            case .info:
                login.serverVersion = reply.string.flatMap { ServerVersion(info: $0) }
            case .clientID:
                id = reply.integer
            case .probeUnblock:
                mayUnblock = reply.integer != nil
            case .ping:
                // What the user may not call it cannot fail at.
                if let message = reply.errorMessage {
                    let error = RedisError(serverMessage: message, command: "PING")
                    if error.code == .authenticationFailed { throw authenticationError(message) }
                    if error.code != .notPermitted { throw error }
                }
            case .setName:
                break
            }
        }
        if let version = login.serverVersion, version < .minimum {
            throw RedisError(
                .unsupportedServer,
                "the server at \(configuration.endpoint) is Redis \(version); \(ServerVersion.minimum) or later is needed"
            )
        }
        login.interruptibleID = mayUnblock ? id : nil
        return login
    }

    private func authenticationError(_ message: String) -> RedisError {
        if configuration.credentials == nil {
            return RedisError(
                .authenticationFailed,
                "the server at \(configuration.endpoint) wants a password: put it in the URL (redis://user:password@host)"
            )
        }
        return RedisError(
            .authenticationFailed,
            "the server at \(configuration.endpoint) refused the login: \(RedisError.withoutArguments(message))",
            command: "AUTH")
    }
}
