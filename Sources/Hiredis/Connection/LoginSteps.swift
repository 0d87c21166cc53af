/// The commands that a new connection sends first, in one write, and the meaning of their replies.
///
/// A user without the right to `CLIENT` and `INFO` can still log in. The client then has no version
/// of the server and no id for `CLIENT UNBLOCK`.
struct LoginSteps {
    private enum Step { case auth, setName, select, info, clientID, probeUnblock, role, ping }

    private var steps: [Step] = []
    private(set) var commands: [RedisCommand] = []
    private let configuration: RedisConfiguration

    /// - Parameter mustBeMaster: whether to refuse a replica, as far as the user may ask for the role.
    init(configuration: RedisConfiguration, role: RedisConnection.Role, mustBeMaster: Bool = false) {
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
            // No client has the id 0, so this only asks whether the user has the right.
            add(.probeUnblock, ["CLIENT", "UNBLOCK", "0"])
        }
        if mustBeMaster { add(.role, ["ROLE"]) }
        add(.ping, ["PING"])
    }

    private mutating func add(_ step: Step, _ command: RedisCommand) {
        steps.append(step)
        commands.append(command)
    }

    /// Reads the replies to the commands.
    ///
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
            case .role:
                if let role = reply.array?.first?.string, role != "master" {
                    throw RedisError(
                        .serverNotReady, "the server at \(configuration.endpoint) is not a master but a \(role)")
                }
            case .ping:
                // A user without the right to PING has logged in nevertheless.
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
                "the server at \(configuration.endpoint) is Redis \(version); \(ServerVersion.minimum) or later is required"
            )
        }
        login.interruptibleID = mayUnblock ? id : nil
        return login
    }

    private func authenticationError(_ message: String) -> RedisError {
        if configuration.credentials == nil {
            return RedisError(
                .authenticationFailed,
                "the server at \(configuration.endpoint) requires a password: put it in the URL (redis://user:password@host)"
            )
        }
        return RedisError(
            .authenticationFailed,
            "the server at \(configuration.endpoint) refused the login: \(RedisError.withoutArguments(message))",
            command: "AUTH")
    }
}
