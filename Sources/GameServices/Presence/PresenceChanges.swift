import CoordinationBase

/// The changes of a bucket as an asynchronous sequence: see ``PresenceBucket/changes(after:)``.
///
/// Each iteration begins at the position with which the sequence was created.
public struct PresenceChanges: AsyncSequence, Sendable {
    /// A snapshot, a change or a gap.
    public typealias Element = PresenceEvent
    /// The error of the iterator.
    public typealias Failure = GameServiceError

    let bucket: PresenceBucket
    let position: PresencePosition?

    /// Creates an iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(bucket: bucket, position: position) }

    /// Reads the changes of a bucket.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let bucket: PresenceBucket
        /// Where to begin; `nil`: with a snapshot.
        private var start: PresencePosition?
        private var follower: ChangeFollower?
        private var signals: AsyncStream<BucketSignal>.Iterator?
        /// Events that were not returned yet, the next one last.
        private var ready: [PresenceEvent] = []

        init(bucket: PresenceBucket, position: PresencePosition?) { (self.bucket, start) = (bucket, position) }

        /// Returns the next event; waits until there is one.
        ///
        /// - Throws: the codes that ``PresenceBucket/changes(after:)`` lists.
        public mutating func next() async throws(GameServiceError) -> PresenceEvent? {
            try await next(isolation: #isolation)
        }

        /// Returns the next event; waits until there is one.
        ///
        /// - Throws: the codes that ``PresenceBucket/changes(after:)`` lists.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(GameServiceError) -> PresenceEvent? {
            while true {
                if let event = ready.popLast() { return event }
                if Task.isCancelled { throw GameServiceError(.cancelled, "the task was cancelled") }
                guard signals != nil else {
                    // First, so that no change after the snapshot is missed.
                    try await subscribe(isolation: actor)
                    continue
                }
                guard let signal = await signals?.next(isolation: actor) else {
                    throw Task.isCancelled ? GameServiceError(.cancelled, "the task was cancelled") : .hasStopped
                }
                try await receive(signal, isolation: actor)
            }
        }

        private mutating func subscribe(isolation actor: isolated (any Actor)?) async throws(GameServiceError) {
            while signals == nil {
                signals = await (try bucket.presence.core(bucket)).subscribe()?.makeAsyncIterator()
            }
            if let start {
                follower = ChangeFollower(at: start)
                try await read(isolation: actor)
            } else {
                try await readSnapshot(isolation: actor)
            }
        }

        private mutating func receive(
            _ signal: BucketSignal, isolation actor: isolated (any Actor)?
        ) async throws(GameServiceError) {
            let action =
                switch signal {
                case .changes(let publication): follower?.receive(publication)
                case .position(let position): follower?.receive(position)
                }
            switch action {
            case .deliver(let changes): ready = changes.reversed().map { .change($0) }
            case .read: try await read(isolation: actor)
            case .ignore, nil: break
            }
        }

        /// Reads the changes after the position, or a snapshot if they are not known.
        private mutating func read(isolation actor: isolated (any Actor)?) async throws(GameServiceError) {
            var events: [PresenceEvent] = []
            while let position = follower?.position {
                let bucket = bucket
                let found = try await Self.retrying(bucket) { () async throws(GameServiceError) in
                    try await bucket.reader.changes(after: position)
                }
                guard case .changes(let changes, let more) = found else {
                    bucket.presence.instruments.gap()
                    try await readSnapshot(isolation: actor)
                    // After the changes that were read before.
                    ready = ready + [.gap] + events.reversed()
                    return
                }
                events += (follower?.advance(changes) ?? []).map { .change($0) }
                if !more { break }
            }
            ready = events.reversed()
        }

        private mutating func readSnapshot(isolation actor: isolated (any Actor)?) async throws(GameServiceError) {
            let bucket = bucket
            let snapshot = try await Self.retrying(bucket) { () async throws(GameServiceError) in
                let snapshot = try await bucket.snapshot()
                if snapshot.position.epoch != 0 { return snapshot }
                // The bucket does not exist. With an epoch its first change is not a gap.
                _ = try await bucket.presence.core(bucket).tick()
                return try await bucket.snapshot()
            }
            follower = ChangeFollower(at: snapshot.position)
            ready = [.snapshot(snapshot)]
        }

        /// Repeats a request while it fails with a transient error.
        private static func retrying<Value>(
            _ bucket: PresenceBucket, _ request: () async throws(GameServiceError) -> Value
        ) async throws(GameServiceError) -> Value {
            var pause = Duration.milliseconds(50)
            while true {
                do throws(GameServiceError) { return try await request() } catch {
                    guard error.isTransient || error.code == .busy else { throw error }
                }
                do { try await bucket.presence.clock.sleep(pause) } catch {
                    throw GameServiceError(.cancelled, "the task was cancelled")
                }
                pause = Swift.min(pause * 2, .seconds(1))
            }
        }
    }
}
