#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An entry of a leaderboard, with its rank in one window.
public struct LeaderboardEntry: Sendable, Hashable {
    /// The name that was submitted.
    public var name: String
    /// The score, within ±2^53.
    public var score: Int
    /// The rank, from 1. Entries with equal scores are ranked by the order in which they reached the
    /// score, so that no two entries have the same rank.
    public var rank: Int
    /// The time at which the entry reached its score, by Redis's clock. The times of two entries
    /// always differ; after a backward step of the clock they continue from the former time.
    public var date: Date
}

/// Entries of one window, best first.
public struct LeaderboardPage: Sendable, Hashable {
    /// The entries, best first.
    public var entries: [LeaderboardEntry]
    /// The number of all entries in the window.
    public var entryCount: Int
    /// The period, for example `daily:2026-11-22`, `weekly:2026-W47`, `monthly:2026-11` or
    /// `all-time`.
    public var period: String
}

/// The place of an entry in one window after a submit.
public struct LeaderboardPlacement: Sendable, Hashable {
    /// The rank from 1.
    public var rank: Int
    /// The score of the entry, which in the mode `.best` may be better than the submitted one.
    public var score: Int
    /// The number of entries in the window.
    public var entryCount: Int
    /// Whether the submit has changed the entry's score or created the entry.
    public var isChanged: Bool
    /// The period, in the notation of ``LeaderboardPage/period``.
    public var period: String
}

/// The answer to a submit.
public struct LeaderboardSubmission: Sendable, Hashable {
    /// The id under which the submit can be repeated.
    public var id: String
    /// The place in each window, as of the first time that the submit was carried out.
    public var placements: [LeaderboardWindow: LeaderboardPlacement]
}

extension LeaderboardEntry {
    private static let stampDigits = 14

    /// Creates an entry from a reply of `board_read`.
    ///
    /// - Parameters:
    ///   - member: 14 hexadecimal digits of the time in microseconds since 1970, and the name.
    ///   - score: the score times the direction.
    init?(rank: Int?, member: String?, score: String?, direction: Int) {
        guard let rank, let member, let score, let stored = Int(score),
            let time = Int(member.prefix(Self.stampDigits), radix: 16)
        else { return nil }
        self.rank = rank
        self.score = stored * direction
        name = String(member.dropFirst(Self.stampDigits))
        date = Date(timeIntervalSince1970: Double(time) / 1e6)
    }
}

extension LeaderboardSubmission {
    /// Parses ANSWER of `board_submit`.
    init?(id: String, answer: String, windows: Set<LeaderboardWindow>) {
        self.id = id
        placements = [:]
        for line in answer.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            guard words.count == 5, let rank = Int(words[0]), let score = Int(words[1]), let count = Int(words[2])
            else { return nil }
            let name = words[4].prefix { $0 != ":" }
            let window = windows.first { $0.description == name } ?? LeaderboardWindow(String(name))
            guard let window else { return nil }
            placements[window] = LeaderboardPlacement(
                rank: rank, score: score, entryCount: count, isChanged: words[3] == "1", period: words[4])
        }
    }
}
