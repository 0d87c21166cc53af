import ArgumentParser
import Hiredis

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Check a server: can it be reached, what may this user do, is the data safe; and what to do about it.",
        discussion: "Exits with 69 when the server cannot be reached and with 77 when a needed right is missing.")
    @OptionGroup var global: GlobalOptions

    func run() async throws {
        let configuration = try global.configuration()
        do {
            try await global.withRedis { redis in
                try global.report(
                    line(.ok, "connection", "reached \(configuration.endpoint)"),
                    Finding(.ok, "connection", "reached \(configuration.endpoint)"))
                var examination = Examination(redis: redis, configuration: configuration)
                var missesRight = false
                for finding in await examination.findings() {
                    try global.report(line(finding.level, finding.check, finding.result, finding.advice), finding)
                    if finding.level == .bad, finding.check == "rights" { missesRight = true }
                }
                if missesRight { throw Failure(.notPermitted, "this user misses a right that is needed, see above") }
            }
        } catch let error as RedisError {
            let finding = Finding(.bad, "connection", error.message, advice: advice(error))
            try global.report(line(.bad, "connection", error.message, finding.advice), finding)
            throw error
        }
    }

    private func advice(_ error: RedisError) -> String {
        switch error.code {
        case .authenticationFailed: "check user and password in the URL"
        case .unsupportedServer: "upgrade the server to Redis \(ServerVersion.minimum) or later"
        default: "check host and port, that the server runs, and, for TLS, rediss:// and --cacert"
        }
    }

    private func line(_ level: Finding.Level, _ check: String, _ result: String, _ advice: String? = nil) -> String {
        "\(level.mark) \(check): \(result)" + (advice.map { "\n    -> \($0)" } ?? "")
    }
}
