// Rate limits: no more is allowed in any time than the rate and the burst, and nothing less is refused.
import Hiredis

@testable import RedisDC

extension SimulatedTask {
    func useRateLimiter() async throws {
        let number = resourceNumber
        let judge = world.family(RateJudge.self)
        let key = "\(world.keys.all[0].dropLast(4))rate:limit \(number)"
        let request = judge.begins(number, cost: self.number(1...2))
        let arguments: [RedisArgument] = [
            .string("\(RateJudge.each)"), .integer(RateJudge.burst), .integer(request.cost),
        ]
        let result: Result<RESPValue, RedisError> = try await world.executor.result {
            process.link.send(Scripts.rateLimit, [key], arguments, timeout: .seconds(2), $0)
        }
        if case .success(let reply) = result { judge.ends(request, isAllowed: reply.array?.first?.integer == 1) }
    }
}

/// Compares what is allowed with the rate.
private final class RateJudge: FamilyJudge {
    struct Request {
        var number: Int
        var limiter: Int
        var cost: Int
        var begin: Time
        var end: Time?
        var isAllowed: Bool?
    }

    /// The microseconds in which one more is allowed.
    static let each = 100_000.0
    static let burst = 4
    private unowned let world: World
    private var requests: [Int: Request] = [:]
    private var last = 0

    init(_ world: World) { self.world = world }

    func begins(_ limiter: Int, cost: Int) -> Request {
        last += 1
        let number = last
        let request = Request(number: number, limiter: limiter, cost: cost, begin: world.now)
        requests[number] = request
        return request
    }

    func ends(_ request: Request, isAllowed: Bool) {
        requests[request.number]?.end = world.now
        requests[request.number]?.isAllowed = isAllowed
        if world.judge.losses > 0 || world.plan.faults.clockSteps > 0 { return }
        requests = requests.filter { world.now - ($0.value.end ?? world.now) < 2_000_000 }
        let others = requests.values.filter { $0.limiter == request.limiter }
        if isAllowed { checkAllowed(request, others) } else { checkRefused(request, others) }
    }

    /// Checks all times that end now.
    private func checkAllowed(_ request: Request, _ others: [Request]) {
        var (sum, isKept) = (0, true)
        for other in others.filter({ $0.isAllowed == true }).sorted(by: { $0.begin > $1.begin }) {
            sum += other.cost
            isKept = isKept && Double(sum) <= Double(Self.burst) + Double(world.now - other.begin) / Self.each
        }
        world.check(isKept, "limit \(request.limiter) has allowed more than its rate: \(sum) in the last seconds")
    }

    private func checkRefused(_ request: Request, _ others: [Request]) {
        let since = request.begin - Time(Self.each) * Time(Self.burst)
        let sum = others.reduce(request.cost) { sum, other in
            let mayCount = other.number != request.number && other.isAllowed != false && other.end ?? .max > since
            return sum + (mayCount ? other.cost : 0)
        }
        world.check(sum > Self.burst, "limit \(request.limiter) has refused \(request.cost) of \(sum) in this time")
    }

    func checkEnd(_ ledger: Ledger) {}
}
