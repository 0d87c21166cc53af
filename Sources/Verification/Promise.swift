// The promises that are judged, and the results.

/// A promise of docs/failure-model.md that a history can confirm or refute.
package enum Promise: String, Codable, Sendable, CaseIterable {
    case exclusion
    case permits
    case fences
    case conservation
    case release
    case barriers
    case order
    case delivery
    case atomicity
    case losses

    /// The promise in words.
    package var sentence: String {
        switch self {
        case .exclusion: "no two hold a lock that excludes them"
        case .permits: "no more permits are leased than exist"
        case .fences: "fences grow and do not repeat"
        case .conservation: "signals and permits are conserved"
        case .release: "what ended processes held is free"
        case .barriers: "a barrier opens for all of its parties"
        case .order: "messages arrive in order and once"
        case .delivery: "confirmed messages arrive"
        case .atomicity: "a send reaches all recipients or none"
        case .losses: "nothing that was confirmed is lost"
        }
    }

    /// The promises of a run.
    static func promises(of header: RunHistory.Header) -> [Promise] {
        if header.isRival == true { return [.exclusion] }
        let families = Set(header.families)
        return allCases.filter { promise in
            switch promise {
            case .exclusion, .fences: families.contains(.locks)
            case .permits, .conservation: families.contains(.semaphores)
            case .release: families.contains(.locks) || families.contains(.semaphores)
            case .barriers: families.contains(.barriers)
            case .order, .delivery, .atomicity: families.contains(.mail)
            case .losses: header.isLossless
            }
        }
    }
}

/// The result for one promise.
package struct Finding: Sendable {
    package var promise: Promise
    /// How often the promise was compared with what happened.
    package var checks = 0
    /// Contradictions that were not announced.
    package var violations: [String] = []
    /// Contradictions of which a process was notified.
    package var announced = 0
    /// Contradictions of which nobody could be notified, because the process was killed.
    package var undecided = 0
    /// The contradictions that are no violations, in words.
    package var explained: [String] = []

    package init(_ promise: Promise) { self.promise = promise }

    /// Adds a contradiction, as what it counts.
    mutating func add(_ notice: Announcements.Notice, _ text: String) {
        switch notice {
        case .given:
            announced += 1
            explained.append("announced: \(text)")
        case .impossible:
            undecided += 1
            explained.append("undecided: \(text)")
        case .missing: violations.append(text)
        }
    }
}
