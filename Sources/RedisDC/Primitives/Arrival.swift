/// The generation in which a party of a barrier, phaser or exchanger passed, and its place in it.
public struct Arrival: Sendable, Hashable {
    /// The number of times that the barrier opened before: 0 for the first time.
    public var generation: UInt64
    /// The order of this arrival in its generation, from 0. Use 0 to elect the party that does what
    /// must be done once.
    public var index: Int

    /// Creates an arrival.
    public init(generation: UInt64, index: Int) { (self.generation, self.index) = (generation, index) }
}

extension Arrival {
    init(_ grant: EngineStateMachine.Grant) {
        self.init(generation: grant.arrival / 1024, index: Int(grant.arrival % 1024))
    }
}
