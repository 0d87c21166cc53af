// The part of a world that uses services: leaderboards, matchmakers and presence, with the real code of the library.
@testable import CoordinationBase
@testable import GameServices

/// The size of the part of a world that uses services.
public struct ServicePlan: Sendable, Codable, Equatable {
    /// The number of tasks of each process that submit to a leaderboard.
    public var boards = 1
    /// The number of tasks of each process that look for matches.
    public var players = 1
    /// The number of tasks of each process that serve a client who is present.
    public var guests = 1
    /// The number of players of a match.
    public var size = 2
    /// Whether the window of ratings is narrow at first, and widens.
    public var widens = false

    /// Creates a plan.
    public init() {}

    init(_ random: inout Random) {
        boards = Int.random(in: 0...2, using: &random)
        players = Int.random(in: 0...3, using: &random)
        guests = Int.random(in: 0...3, using: &random)
        size = Int.random(in: 2...3, using: &random)
        widens = random.isOne(in: 2)
    }
}

/// The services of a process.
///
/// `@unchecked`: a world is used by one thread.
final class ServiceProcess: @unchecked Sendable {
    let owner: MailProcess
    let board: Leaderboard
    let matchmaker: Matchmaker
    let bucket: PresenceBucket
    var world: World { owner.mail.world }

    /// A short window, of which a world sees many periods.
    static let window = LeaderboardWindow.every(.seconds(2))

    init(of owner: MailProcess, _ plan: ServicePlan) throws {
        self.owner = owner
        let world = owner.mail.world
        var rules = LeaderboardConfiguration()
        (rules.mode, rules.windows) = (.sum, [.allTime, Self.window])
        // The clocks of machines are wrong by up to 5 s.
        let error = Int(world.random.time(0...10_000_000)) - 5_000_000
        let clock = owner.client.clock
        board = try Leaderboard(
            BoardJudge.name, redis: owner.client, namespace: BoardJudge.namespace, configuration: rules,
            serverClock: ServerClock { Int(Servers.beginning) + error + Int(clock.now().microseconds) }, clock: clock)
        matchmaker = try Matchmaker(
            MatchJudge.name, redis: owner.client, office: owner.office, namespace: BoardJudge.namespace,
            configuration: Self.rules(plan), clock: clock)
        var presenceRules = PresenceConfiguration()
        (presenceRules.ttl, presenceRules.linger, presenceRules.maxLoggedChanges) = (.seconds(2), .seconds(1), 12)
        let presence = try Presence(
            redis: owner.client, namespace: BoardJudge.namespace, configuration: presenceRules, clock: clock)
        bucket = try presence.bucket("hall")
        owner.keep(owner.mail.executor.begin { await presence.run() })
        owner.keep(owner.mail.executor.begin { [matchmaker] in await matchmaker.run() })
    }

    static func rules(_ plan: ServicePlan) -> MatchmakerConfiguration {
        var rules = MatchmakerConfiguration()
        rules.size = plan.size
        if plan.widens { rules.window = MatchWindow(start: 50, step: 100, every: .milliseconds(500), max: 400) }
        (rules.nodeTTL, rules.takeOverAfter) = (.seconds(3), .seconds(1))
        return rules
    }

    /// Begins the tasks.
    func begin(_ plan: ServicePlan) {
        for _ in 0..<plan.boards { owner.begin { await BoardTask(self).run() } }
        for number in 0..<plan.guests { owner.begin { await GuestTask(self, number).run() } }
        if plan.guests > 0 { Follower(self).begin() }
        for number in 0..<plan.players { owner.begin { await PlayerTask(self, number).run() } }
    }
}
