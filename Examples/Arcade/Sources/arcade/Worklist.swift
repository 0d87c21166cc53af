import Synchronization

/// Names for which something is to be done, each once however often it is added. One task takes them out.
final class Worklist: AsyncSequence, Sendable {
    private let names = Mutex<Set<String>>([])
    private let wakeUps = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    func add(_ names: some Sequence<String>) {
        self.names.withLock { $0.formUnion(names) }
        wakeUps.continuation.yield()
    }

    func makeAsyncIterator() -> Iterator { Iterator(list: self, wakeUps: wakeUps.stream.makeAsyncIterator()) }

    /// Waits until there is a name, and takes it out. Ends when the task is cancelled.
    struct Iterator: AsyncIteratorProtocol {
        fileprivate let list: Worklist
        fileprivate var wakeUps: AsyncStream<Void>.AsyncIterator

        mutating func next(isolation actor: isolated (any Actor)?) async -> String? {
            while !Task.isCancelled {
                if let name = list.names.withLock({ $0.popFirst() }) { return name }
                if await wakeUps.next(isolation: actor) == nil { return nil }
            }
            return nil
        }
    }
}
