import Testing

@testable import World

/// An alteration of the scripts that breaks a promise.
struct Alteration: CustomTestStringConvertible, Sendable {
    /// The promise that it breaks.
    let promise: String
    /// The family of primitives in use; `nil` for the plans of the seeds.
    var use: String?
    /// See ``Faults/lostWakeUps``.
    var lostWakeUps = 0
    /// The texts of the scripts, on one line, and what is there instead.
    let replacements: [String: String]
    /// A part of what the judge says; empty if any judge may find it first.
    var finding = ""

    var testDescription: String { promise }

    func alter(_ source: String) -> String {
        let code = source.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: " ")
        let line = code.split(separator: " ").joined(separator: " ")
        return replacements.reduce(line) { $0.replacing($1.key, with: $1.value) }
    }

    /// A world of a few processes, some of which end, and in which nothing else goes wrong.
    private func plan(_ seed: UInt64) -> World.Plan {
        guard let use else { return World.Plan(seed: seed) }
        var plan = World.Plan()
        (plan.processes, plan.tasks, plan.seconds, plan.resources, plan.uses) = (3, 2, 30, 1, [use])
        (plan.pause, plan.hold, plan.ttls, plan.faults) = (500_000, 500_000, [2], .deaths)
        plan.faults.lostWakeUps = lostWakeUps
        return plan
    }

    /// The first violation that a judge finds in the first seed that has one.
    func firstFinding() -> String? {
        for seed in 1...20 as ClosedRange<UInt64> {
            let world = World(seed: seed, plan: plan(seed), alteredScripts: alter)
            world.run()
            if let violation = world.violations.first { return violation }
        }
        return nil
    }

    private static let sweeps =
        "local expired = call('ZRANGEBYSCORE', partition_sessions, format('%d', -now), "
        + "format('%d', now), 'LIMIT', '0', '64')"
    private static let limits = "local wait = backlog + (cost - burst) * interval"
    private static let passages = "local passages = arguments[6] == '1' and 1125899906842624 or 0"
    private static let release = #"== 'mfp\0\0\0\0\0\0\0\0' and"#

    static let all = [
        Alteration(
            promise: "fences grow",
            replacements: [
                ") + 1 if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then clock_tick = clock_now end":
                    ")"
            ]),
        Alteration(promise: "a mutex is released to its first waiter", replacements: [release: "~= '' and"]),
        Alteration(
            promise: "several locks are released to their first waiters", use: "several-locks",
            replacements: [release: "~= '' and"]),
        Alteration(
            promise: "what the dead have held is free in time", use: "pool",
            replacements: [sweeps: "local expired = {}"],
            finding: "after the end of its session"),
        Alteration(
            promise: "a session expires a TTL after its last heartbeat", use: "pool",
            replacements: ["session_expires = now + ttl": "session_expires = now + 3 * ttl"],
            finding: "later than its TTL"),
        Alteration(
            promise: "a heartbeat finds that a wake-up was lost", use: "buffer", lostWakeUps: 3,
            replacements: [
                "session.notices, session.is_changed = session.notices + 1, true writes_wakeups":
                    "session.notices, session.is_changed = session.notices, true writes_wakeups"
            ], finding: "does not know after"),
        Alteration(
            promise: "items are taken in their order", use: "buffer",
            replacements: [
                #"local line = call('ZRANGEBYLEX', partition_index, '[v' .. name .. '\0', '(v' .. name .. '\1', 'LIMIT', '0', '1')[1]"#:
                    #"local lines = call('ZRANGEBYLEX', partition_index, '[v' .. name .. '\0', '(v' .. name .. '\1', 'LIMIT', '0', '9') local line = lines[#lines]"#
            ], finding: "was taken before an earlier one"),
        Alteration(
            promise: "a limit allows no more than its rate", use: "rate-limit",
            replacements: [limits: "local wait = backlog + (cost - burst - 2) * interval"],
            finding: "has allowed more than its rate"),
        Alteration(
            promise: "a limit refuses nothing within its rate", use: "rate-limit",
            replacements: [limits: "local wait = backlog + (cost - burst + 1) * interval"], finding: "has refused"),
        Alteration(
            promise: "a locked gate lets nobody through", use: "turnstile",
            replacements: [passages: "local passages = 1125899906842624"], finding: "which was locked all the time"),
        Alteration(
            promise: "an open gate lets everybody through", use: "turnstile",
            replacements: [passages: "local passages = 0"], finding: "which was open all the time"),
        Alteration(
            promise: "a notification wakes as many waiters as it says", use: "condition",
            replacements: [
                "local count = arguments[6] and tonumber(arguments[6]) or 1":
                    "local count = (arguments[6] and tonumber(arguments[6]) or 1) + 1"
            ], finding: "and was notified for"),
        Alteration(
            promise: "the parties of a double barrier finish together", use: "double-barrier",
            replacements: [
                "resource_waiting >= resource_limit":
                    "resource_waiting >= (resource_kind == 'pf' and 1 or resource_limit)",
                "living == resource_limit": "living >= (resource_kind == 'pf' and 1 or resource_limit)",
            ]),
    ]
}

@Suite("Altered scripts")
struct AlteredScriptTests {
    @Test("are found by the judge of the promise that they break", arguments: Alteration.all)
    func found(alteration: Alteration) throws {
        let finding = try #require(alteration.firstFinding())
        #expect(finding.contains(alteration.finding))
    }
}
