import ArgumentParser
import CommandLineTool
import Hiredis
import RedisDC

/// The `redisdc doctor` command.
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a server's reachability, persistence, replicas and permissions, and advise on each problem.",
        discussion: """
            Changes nothing except keys of its own, which it deletes. With --namespace, it uses resources of its own \
            in that namespace, and deletes them. The rights to INFO and CONFIG GET are needed only for the checks \
            that use them; it says which ones it left out. Exits with 69 if the server cannot be reached and with 77 \
            if a required right is missing.
            """
    )
    .examples("redisdc doctor --redis redis://alice:secret@10.0.0.1 --namespace orders")
    @OptionGroup var global: GlobalOptions

    @Option(help: "The namespace of a user who may use only this one. (default: all of rdc:)")
    var namespace: String?

    @Option(help: "The time to live of the program's sessions, in seconds, from 1.")
    var ttl = 15

    func validate() throws {
        guard ttl >= 1 else { throw ValidationError("--ttl is \(ttl), expected at least 1") }
    }

    func run() async throws {
        let configuration = try global.configuration()
        do {
            try await global.withRedis { redis in
                if let namespace { _ = try Coordinator(redis: redis, namespace: namespace) }
                try global.report(
                    line(.ok, "connection", "reached \(configuration.endpoint)"),
                    Finding(.ok, "connection", "reached \(configuration.endpoint)"))
                let examination = Examination(
                    redis: redis, configuration: configuration, namespace: namespace, ttl: ttl)
                var missesRight = false
                for finding in await examination.findings() {
                    try global.report(line(finding.level, finding.check, finding.result, finding.advice), finding)
                    if finding.level == .bad, finding.check == "rights" { missesRight = true }
                }
                if missesRight { throw Failure(.notPermitted, "the Redis user lacks a required right, see above") }
            }
        } catch let error as RedisError {
            let finding = Finding(.bad, "connection", error.message, advice: advice(error))
            try global.report(line(.bad, "connection", error.message, finding.advice), finding)
            throw error
        }
    }

    private func advice(_ error: RedisError) -> String {
        switch error.code {
        case .authenticationFailed: "check the user and the password in the URL"
        case .unsupportedServer: "upgrade the server to Redis \(ServerVersion.minimum) or later"
        default: "check that the server runs, its host and port, and for TLS rediss:// and --cacert"
        }
    }

    private func line(_ level: Finding.Level, _ check: String, _ result: String, _ advice: String? = nil) -> String {
        "\(level.mark) \(check): \(result)" + (advice.map { "\n    -> \($0)" } ?? "")
    }
}
