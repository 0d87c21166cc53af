import RedisDC
import TestSupport
import Testing

/// The leader that an observer of an election has received last.
actor Leaders {
    private(set) var last: Leader??

    init(_ election: Election) {
        Task { [weak self] in
            for await leader in election.changes() {
                guard let self else { return }
                await self.received(leader)
            }
        }
    }

    private func received(_ leader: Leader?) { last = .some(leader) }
}
