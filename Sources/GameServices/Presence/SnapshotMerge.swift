import CoordinationBase

/// Brings pages of different versions to one version.
struct SnapshotMerge {
    /// The position after the last applied change.
    private(set) var position: PresencePosition
    private var objects: [ByteName: PresenceObject] = [:]
    /// The positions of the pages, each of which must be in the history of the changes.
    private var unconfirmed: [Int: PresencePosition] = [:]
    private var isConsistent = true

    /// - Parameter position: that of the first page.
    init(at position: PresencePosition) { self.position = position }

    /// Adds a page, before any change.
    mutating func add(_ page: [PresenceObject], at its: PresencePosition) {
        for object in page { objects[ByteName(object.key)] = object }
        if let other = unconfirmed.updateValue(its, forKey: its.version), other != its { isConsistent = false }
        if its.version == position.version { confirm(position) }
    }

    /// Applies the change after ``position``. An object that is of a later version already stays.
    mutating func apply(_ logged: LoggedChange) {
        let change = logged.change
        position = logged.position(epoch: position.epoch)
        confirm(position)
        switch change.kind {
        case .put(let object, _):
            let name = ByteName(object.key)
            if (objects[name]?.version ?? -1) < change.version { objects[name] = object }
        case .left(let leave):
            let name = ByteName(leave.key)
            if (objects[name]?.version ?? 0) < change.version { objects[name] = nil }
        }
    }

    private mutating func confirm(_ position: PresencePosition) {
        guard let found = unconfirmed.removeValue(forKey: position.version) else { return }
        if found != position { isConsistent = false }
    }

    /// All objects at ``position``; `nil` if the pages are not of one history.
    var snapshot: PresenceSnapshot? {
        guard isConsistent, unconfirmed.isEmpty else { return nil }
        let sorted = objects.values.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        return PresenceSnapshot(objects: sorted, position: position)
    }
}
