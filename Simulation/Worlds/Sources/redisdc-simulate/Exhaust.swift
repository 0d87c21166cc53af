// The command that tries all orders of the events of tiny worlds.
import ArgumentParser
import Foundation
import World

struct Exhaust: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tries all orders of the events of tiny worlds.",
        discussion: """
            The command ends with status 1 at the first broken promise, and prints the last events before it and the choices
            that lead to it, which --path repeats. It ends with status 2 if some scenario was not finished in time.
            """)

    @Argument(help: "The scenarios, or the families of which all are tried; without them, all.")
    var names: [String] = []
    @Option(help: "The choices of one path, separated by commas, which is run in place of all, with its events.")
    var path: String?
    @Option(help: "Spend this many seconds on a scenario at most.")
    var limit: Double = 600
    @OptionGroup var alteration: AlterationOptions
    @Flag(help: "The scripts that the server runs are among the events.")
    var scripts = false
    @Flag(help: "List the scenarios.")
    var list = false

    func run() throws {
        if list {
            for scenario in Scenario.all { print("\(scenario.name): \(scenario.summary); faults: \(scenario.budget)") }
            return
        }
        try repeatWithDeterministicHashes()
        if let path { return try replay(path) }
        let head = ["scenario", "processes × tasks", "faults", "depth", "paths", "states", "result", "processor s"]
        print("| \(head.joined(separator: " | ")) |\n|\(String(repeating: "---|", count: head.count))")
        var isComplete = true
        for scenario in selected { isComplete = try explore(scenario) && isComplete }
        if !isComplete { throw ExitCode(2) }
    }

    private var selected: [Scenario] {
        names.isEmpty ? Scenario.all : Scenario.all.filter { names.contains($0.name) || names.contains($0.family) }
    }

    private func explore(_ scenario: Scenario) throws -> Bool {
        let (begin, processor) = (Date(), clock())
        let limit = limit
        var explorer = Explorer(scenario, alteredScripts: alteration.alter)
        let finding = explorer.run { Date().timeIntervalSince(begin) > limit }
        let result = finding != nil ? "broken" : explorer.isComplete ? "kept" : "not finished"
        let seconds = String(format: "%.1f", Double(clock() - processor) / Double(CLOCKS_PER_SEC))
        let size = "\(scenario.processes) × \(scenario.tasks)"
        print(
            "| `\(scenario.name)` | \(size) | \(scenario.budget) | \(explorer.depth) | \(explorer.paths) | "
                + "\(explorer.states) | \(result) | \(seconds) |")
        fflush(nil)
        if let finding {
            let choices = finding.choices.map(String.init).joined(separator: ",")
            let world = Explorer.replay(
                scenario, finding.choices, alteredScripts: alteration.alter, notesScripts: scripts)
            show(world)
            if world.violations != finding.world.violations {
                print("the path breaks another promise when it is repeated: \(finding.world.violations)")
            }
            print("after \(explorer.paths) paths; again: exhaust \(scenario.name) --path '\(choices)'")
            throw ExitCode(1)
        }
        return explorer.isComplete
    }

    private func replay(_ path: String) throws {
        let choices = path.split(separator: ",").compactMap { Int($0) }
        let world = Explorer.replay(
            selected[0], choices, alteredScripts: alteration.alter, notesScripts: scripts)
        show(world)
        if !world.violations.isEmpty { throw ExitCode(1) }
    }

    private func show(_ world: World) {
        for line in world.lastEvents.suffix(scripts ? 200 : 60) { print(line) }
        for violation in world.violations { print("\(violation)") }
    }

    func validate() throws {
        for name in names where !Scenario.all.contains(where: { $0.name == name || $0.family == name }) {
            let known = Scenario.all.map(\.name).joined(separator: ", ")
            throw ValidationError("\(name) is not one of \(known)")
        }
        if path != nil, selected.count != 1 { throw ValidationError("--path needs the name of one scenario") }
    }
}
