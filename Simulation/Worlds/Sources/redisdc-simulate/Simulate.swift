// The command that runs worlds from seeds.
import ArgumentParser
import Foundation
import World

@main
struct Program: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "redisdc-simulate",
        abstract: "Runs simulated deployments, and checks the promises of the library.",
        subcommands: [Simulate.self, Exhaust.self], defaultSubcommand: Simulate.self)
}

/// Runs worlds from seeds.
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "seeds",
        abstract: "Runs simulated deployments from seeds, and checks the promises of the library.",
        discussion: """
            A seed repeats a run exactly. The command ends with status 1 at the first broken promise, and prints the last
            events before it.
            """)

    @Option(help: "The first seed.")
    var seed: UInt64 = 1
    @Option(help: "The number of seeds.")
    var runs = 1
    @Option(help: "Begin no further run after so many seconds; then --runs is not needed.")
    var limit: Double?
    @Option(help: "The number of processes; without it, each seed draws one.")
    var processes: Int?
    @Option(help: "The number of tasks of each process; without it, each seed draws one.")
    var tasks: Int?
    @Option(
        help: "The number of tasks of each process that use mailboxes; without it, each seed draws one.")
    var mail: Int?
    @Option(
        help: "The number of tasks of each process that use a leaderboard, a matchmaker and presence, for each of them."
    )
    var services: Int?
    @Option(help: "The number of partitions of the mailboxes; without it, each seed draws one.")
    var partitions: Int?
    @Option(
        help: "The seconds, of the simulated time, in which tasks begin operations; without it, each seed draws some.")
    var seconds: Int?
    @Option(help: "The families of primitives, separated by commas; without it, each seed draws some.")
    var uses: String?
    @Option(help: "Connections that break, in a minute.")
    var breaks: Int?
    @Option(help: "Promotions of a replica that lacks the last writes, in a minute; without it, some seeds draw some.")
    var promotions: Int?
    @Option(help: "Steps of the server's clock, in a minute; without it, some seeds draw some.")
    var clockSteps: Int?
    @OptionGroup var alteration: AlterationOptions
    @Option(
        help: "A plan as JSON, as the end of a run with a broken promise prints it, in place of those of the seeds.")
    var plan: String?
    @Option(help: "After a broken promise, look this many seconds for a smaller world that breaks it too.")
    var shrink: Double?
    @Option(help: "After a broken promise, write a picture of the last events to this file, in SVG.")
    var picture: String?
    @Option(
        help: "Write what the processes of the last seed have done to this file, which redisdc verify --replay judges.")
    var history: String?
    @Option(help: "Run the worlds of this file, which once showed a fault, in place of those of seeds.")
    var corpus: String?
    @Option(
        help: "Print the line of the first seed for that file, with this text about what it has shown; run nothing.")
    var known: String?
    @Flag(help: "The scripts that the server runs are among the events.")
    var scripts = false
    @Option(help: "The number of last events to print (default: 60, or 200 with --scripts).")
    var last: Int?
    @Flag(help: "Print the last events also if all promises were kept.")
    var verbose = false

    func run() throws {
        try repeatWithDeterministicHashes()
        if let corpus { return try Self.runCorpus(corpus) }
        if let known { return try print(KnownWorld(known, seed, plan(seed), alteration).line()) }
        let begin = Date()
        var (total, checks, hours, faults) = (0, 0, 0.0, 0)
        var current = seed
        while limit.map({ Date().timeIntervalSince(begin) < $0 }) ?? (current < seed + UInt64(runs)) {
            let plan = try plan(current)
            let world = World(seed: current, plan: plan, alteredScripts: alteration.alter)
            world.notesScripts = scripts
            world.lastEventCount = max(200, last ?? 0)
            if history != nil { world.keepHistory() }
            world.run()
            if let history { try write(world.historyLines, world.historyHeader(seed: current), to: history) }
            (total, checks) = (total + world.events, checks + world.checks)
            (hours, faults) = (hours + world.seconds / 3600, faults + world.faults)
            if !world.violations.isEmpty {
                try report(Shrinker.Finding(seed: current, plan: plan, world: world))
                throw ExitCode(1)
            }
            if verbose { show(world) }
            current += 1
        }
        let seconds = Date().timeIntervalSince(begin)
        print(
            "\(current - seed) seeds, \(total) events, \(checks) checks, \(faults) faults, "
                + String(format: "%.2f simulated hours in %.1f s: every promise was kept", hours, seconds))
    }

    private func write(_ lines: [History.Line], _ header: History.Header, to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = try encoder.encode(header)
        for line in lines { text += try Data([UInt8(ascii: "\n")]) + encoder.encode(line) }
        try (text + [UInt8(ascii: "\n")]).write(to: URL(fileURLWithPath: path))
    }

    private func show(_ world: World) {
        for line in world.lastEvents.suffix(last ?? (scripts ? 200 : 60)) { print(line) }
    }

    /// Reports a broken promise: the smallest world found, its last events, and how to see it again.
    private func report(_ found: Shrinker.Finding) throws {
        var finding = found
        if let shrink {
            let end = Date() + shrink
            print("seed \(found.seed) breaks a promise after \(found.world.events) events; looking for a smaller world")
            finding = Shrinker(alteredScripts: alteration.alter, isOver: { Date() > end }).shrink(found)
        }
        show(finding.world)
        for violation in finding.world.violations { print("seed \(finding.seed): \(violation)") }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let plan = String(decoding: try encoder.encode(finding.plan), as: UTF8.self)
        print("after \(finding.world.events) events; again: --seed \(finding.seed) --plan '\(plan)'")
        if let picture {
            let title = "seed \(finding.seed): \(finding.world.violations[0])"
            let drawing = TimelinePicture(finding.world.lastEvents.suffix(200), title: title)
            try drawing.svg.write(toFile: picture, atomically: true, encoding: .utf8)
            print("the picture is in \(picture)")
        }
    }

    private func plan(_ seed: UInt64) throws -> World.Plan {
        if let plan { return try JSONDecoder().decode(World.Plan.self, from: World.Plan.completed(Data(plan.utf8))) }
        var plan = World.Plan(seed: seed)
        plan.processes = processes ?? plan.processes
        plan.tasks = tasks ?? plan.tasks
        plan.seconds = seconds ?? plan.seconds
        if let uses { plan.uses = uses.split(separator: ",").map(String.init) }
        plan.mail.tasks = mail ?? plan.mail.tasks
        if let services {
            plan.services = services > 0 ? plan.services ?? ServicePlan() : nil
            plan.services?.boards = services
            plan.services?.players = services
            plan.services?.guests = services
        }
        plan.mail.partitions = partitions ?? plan.mail.partitions
        plan.faults.breaks = breaks ?? plan.faults.breaks
        plan.faults.promotions = promotions ?? plan.faults.promotions
        plan.faults.clockSteps = clockSteps ?? plan.faults.clockSteps
        return plan
    }

    func validate() throws {
        for use in uses?.split(separator: ",") ?? [] where !World.families.contains(String(use)) {
            throw ValidationError("\(use) is not one of \(World.families.joined(separator: ", "))")
        }
    }
}
