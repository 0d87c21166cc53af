/// Follows the changes of a bucket through publications that may be missing, repeated, or of a
/// history that Redis has lost.
struct ChangeFollower {
    /// The action after a signal.
    enum Action: Equatable {
        /// Nothing new.
        case ignore
        /// The next changes.
        case deliver([PresenceChange])
        /// Read the changes after ``position``: some were missed, or the history must be checked.
        case read
    }

    /// The position after the last delivered change.
    private(set) var position: PresencePosition
    /// The tags of recent versions, by which a repeated publication is known.
    private var tags: [Int: UInt64] = [:]
    private static let maxTags = 4096

    init(at position: PresencePosition) {
        self.position = position
        tags[position.version] = position.tag
    }

    /// Receives a publication.
    mutating func receive(_ publication: PresencePublication) -> Action {
        if publication.start == position {
            return .deliver(advance(publication.changes))
        }
        return isKnown(publication.end) ? .ignore : .read
    }

    /// Receives the position that the bucket had a moment ago. An earlier one may be late, or Redis
    /// may have lost the changes since: reading tells.
    func receive(_ current: PresencePosition) -> Action { current == position ? .ignore : .read }

    /// Receives the changes after ``position`` that were read.
    mutating func advance(_ changes: [LoggedChange]) -> [PresenceChange] {
        for change in changes {
            position = change.position(epoch: position.epoch)
            tags[position.version] = position.tag
            tags[position.version - Self.maxTags] = nil
        }
        return changes.map(\.change)
    }

    private func isKnown(_ other: PresencePosition) -> Bool {
        other.epoch == position.epoch && tags[other.version] == other.tag
    }
}
