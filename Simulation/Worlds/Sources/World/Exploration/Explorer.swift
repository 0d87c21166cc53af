// Tries all orders of the events of a scenario, one path after the other.

/// Explores a scenario depth first.
///
/// Tasks cannot be copied, so each path runs from the beginning: it repeats the choices of the one before it up to the last
/// one that has another option, takes that, and the first option of each choice after it. A path ends early at a state that
/// was visited before, because what can happen from there is explored already, or will be.
public struct Explorer {
    /// The scenario.
    public let scenario: Scenario
    private let alteredScripts: (String) -> String
    /// The number of paths so far.
    public private(set) var paths = 0
    /// The number of choices, each between the options of another state.
    public var states: Int { visited.count }
    /// The most choices on a path.
    public private(set) var depth = 0
    /// The number of events, those of repeated parts of paths included.
    public private(set) var events = 0
    /// Whether all paths were tried.
    public private(set) var isComplete = false
    /// The states at the ends of paths.
    private(set) var ends: Set<Int> = []
    private let usesStates: Bool
    private var visited: Set<Int> = []
    private var choices: [Exploration.Taken] = []

    /// A path that has broken a promise.
    public struct Finding {
        /// Which option each choice takes; the first one after them.
        public var choices: [Int]
        /// The world after it.
        public var world: World
    }

    /// - Parameters:
    ///   - alteredScripts: returns the text of a script that the server runs in place of the library's.
    ///   - usesStates: whether paths end at states that were visited before.
    public init(
        _ scenario: Scenario, alteredScripts: @escaping (String) -> String = { $0 }, usesStates: Bool = true
    ) {
        (self.scenario, self.usesStates) = (scenario, usesStates)
        var texts: [String: String] = [:]
        self.alteredScripts = { text in
            if let known = texts[text] { return known }
            let altered = alteredScripts(text)
            texts[text] = altered
            return altered
        }
    }

    /// Tries paths until one breaks a promise, all were tried, or it is over.
    public mutating func run(isOver: () -> Bool = { false }) -> Finding? {
        while !isComplete, !isOver() {
            let (world, path) = follow(choices.map(\.index))
            paths += 1
            events += world.events
            depth = max(depth, path.taken.count)
            if let end = path.end { ends.insert(end) }
            precondition(!path.hasDiverged, "a path differs from the one whose choices it repeats")
            if !world.violations.isEmpty { return Finding(choices: Self.trimmed(path), world: world) }
            choices = path.taken
            while let last = choices.last, last.index + 1 == last.count { choices.removeLast() }
            guard let last = choices.popLast() else {
                isComplete = true
                break
            }
            choices.append(Exploration.Taken(index: last.index + 1, count: last.count))
        }
        return nil
    }

    private mutating func follow(_ prefix: [Int]) -> (World, Exploration) {
        // The path adds to the states while it runs.
        var visited = self.visited
        self.visited = []
        let usesStates = usesStates
        let world = scenario.world(alteredScripts: alteredScripts)
        let path = Exploration(prefix: prefix, processes: scenario.processes, budget: scenario.budget) { state in
            !visited.insert(state).inserted && usesStates
        }
        world.run(path, begin: scenario.begin)
        self.visited = visited
        return (world, path)
    }

    /// Runs one path, the first options after its choices, also past states that were visited.
    public static func replay(
        _ scenario: Scenario, _ choices: [Int], alteredScripts: @escaping (String) -> String = { $0 },
        notesScripts: Bool = false
    ) -> World {
        let world = scenario.world(alteredScripts: alteredScripts)
        world.notesScripts = notesScripts
        let path = Exploration(prefix: choices, processes: scenario.processes, budget: scenario.budget) { _ in false }
        world.run(path, begin: scenario.begin)
        if path.hasDiverged { world.violation("the scenario has no such path") }
        return world
    }

    private static func trimmed(_ path: Exploration) -> [Int] {
        var choices = path.taken.map(\.index)
        while choices.last == 0 { choices.removeLast() }
        return choices
    }
}
