// A linearizability check.

/// The behaviour of a resource with one caller at a time.
protocol SequentialModel {
    associatedtype State: Hashable
    associatedtype Step

    var start: State { get }

    /// Returns the state after a step, or `nil` if its outcome is impossible in this state.
    ///
    /// - Parameter others: The steps in flight that have not taken effect.
    func state(after step: Step, in state: State, besides others: () -> [Step]) -> State?
}

/// A step that took effect at some moment between its call and its return.
///
/// A step without a return took effect at any time after its call, or never.
struct TimedStep<Step> {
    var step: Step
    var called: UInt64
    var returned: UInt64?
}

/// A search for an order of the steps that the model allows and in which a step that returned
/// before another one was called comes first.
///
/// The algorithm is from J. M. Wing and C. Gong, "Testing and verifying concurrent objects", 1993.
/// Remembering the states, and ordering a step no sooner than a return demands it, are from G.
/// Lowe, "Testing for linearizability", 2017. Steps that have returned leave the search, so that
/// its cost depends on the number of concurrent steps, not on the length of the history.
struct Linearizability<Model: SequentialModel> {
    enum Verdict: Equatable {
        case legal
        /// In no order can this step return when it did.
        case illegal(step: Int)
        /// More concurrent steps than can be searched.
        case tooWide(step: Int)
    }

    /// A possible state, and the steps in flight that have taken effect in it.
    private struct Configuration: Hashable {
        var state: Model.State
        var done: UInt64
    }

    private let model: Model
    private let steps: [TimedStep<Model.Step>]
    private let limit: Int
    private var possible: Set<Configuration>
    /// The steps in flight, each in one of 64 places.
    private var places: [Int?] = Array(repeating: nil, count: 64)

    static func verdict(on steps: [TimedStep<Model.Step>], of model: Model, limit: Int = 100_000) -> Verdict {
        var search = Self(model: model, steps: steps, limit: limit)
        return search.run()
    }

    private init(model: Model, steps: [TimedStep<Model.Step>], limit: Int) {
        (self.model, self.steps, self.limit) = (model, steps, limit)
        possible = [Configuration(state: model.start, done: 0)]
    }

    private struct Event {
        var time: UInt64
        var step: Int
        var isReturn: Bool
    }

    private mutating func run() -> Verdict {
        var events: [Event] = []
        for (index, step) in steps.enumerated() {
            events.append(Event(time: step.called, step: index, isReturn: false))
            if let returned = step.returned { events.append(Event(time: returned, step: index, isReturn: true)) }
        }
        // At the same moment calls come before returns, so that the two steps are concurrent.
        events.sort { ($0.time, $0.isReturn ? 1 : 0, $0.step) < ($1.time, $1.isReturn ? 1 : 0, $1.step) }
        for event in events {
            if event.isReturn {
                let place = places.firstIndex(of: event.step)!
                guard returns(place) else { return .tooWide(step: event.step) }
                if possible.isEmpty { return .illegal(step: event.step) }
                places[place] = nil
            } else {
                guard let place = places.firstIndex(of: nil) else { return .tooWide(step: event.step) }
                places[place] = event.step
            }
        }
        return .legal
    }

    /// Keeps the states in which the step at `place` has taken effect, after any other steps in
    /// flight.
    ///
    /// - Returns: `false` if there are more states than the limit.
    private mutating func returns(_ place: Int) -> Bool {
        let bit: UInt64 = 1 << place
        var seen = possible
        var ahead = Array(possible)
        possible = []
        let open = places.enumerated().compactMap { place, step in step.map { (place, $0) } }
        while let configuration = ahead.popLast() {
            if configuration.done & bit != 0 {
                possible.insert(Configuration(state: configuration.state, done: configuration.done & ~bit))
                continue
            }
            for (other, step) in open where configuration.done & (1 << other) == 0 {
                guard let state = after(step, other, configuration, open) else { continue }
                let next = Configuration(state: state, done: configuration.done | 1 << other)
                if seen.insert(next).inserted { ahead.append(next) }
            }
            if seen.count > limit { return false }
        }
        return true
    }

    private func after(
        _ step: Int, _ place: Int, _ configuration: Configuration, _ open: [(Int, Int)]
    ) -> Model.State? {
        model.state(after: steps[step].step, in: configuration.state) {
            open.compactMap { other, step in
                other != place && configuration.done & (1 << other) == 0 ? steps[step].step : nil
            }
        }
    }
}
