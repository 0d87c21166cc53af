import ArgumentParser
import CommandLineTool
import RedisDC

/// The `redisdc rate` command.
struct Rate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Wait until a rate limit that all processes share allows one more request, and count it.",
        discussion: """
            With --timeout 0 it does not wait: the exit status is 0 if the request is allowed, and 75 if it is not and was \
            not counted.
            """
    )
    .examples("redisdc rate mails --rate 100 --per 60 && ./send-mail.sh")
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The limit's name.") var name: String
    @Option(help: "The number of requests in each period, 1 to 1,000,000,000.") var rate: Int
    @Option(help: "The period in seconds, 0.001 to 31,622,400 (366 days).") var per = 1.0
    @Option(help: "The number of requests that are allowed at once after a pause. (default: --rate)") var burst: Int?
    @Option(help: "The number of requests that this one counts as, 1 to the burst.") var cost = 1
    @OptionGroup var timeout: TimeoutOption

    private struct Report: Encodable {
        var name: String
        var allowed: Bool
        var retryAfter: Double?
        var remaining: Int?
    }

    func validate() throws {
        guard per >= 0.001, per <= 31_622_400 else {
            throw ValidationError("--per must be a number of seconds, 0.001 to 31,622,400")
        }
    }

    func run() async throws {
        try await engine.withObserver { coordinator in
            let limiter = try coordinator.rateLimiter(name, rate: rate, per: .seconds(per), burst: burst)
            if timeout.timeout == 0 { return try await ask(limiter) }
            try await engine.global.reportWait(timedOut: Report(name: name, allowed: false)) {
                try await limiter.acquire(cost: cost, timeout: timeout.duration)
                try engine.global.report("allowed", Report(name: name, allowed: true))
            }
        }
    }

    private func ask(_ limiter: RateLimiter) async throws {
        let decision = try await limiter.tryAcquire(cost: cost)
        let wait = decision.retryAfter / .seconds(1)
        if decision.isAllowed || engine.global.json {
            try engine.global.report(
                "allowed, \(decision.remaining) left",
                Report(
                    name: name, allowed: decision.isAllowed, retryAfter: decision.isAllowed ? nil : wait,
                    remaining: decision.remaining))
        }
        guard decision.isAllowed else {
            throw Failure(.notAcquired, "\"\(name)\" does not allow the request now; it would in \(wait) s")
        }
    }
}
