// What a question says about where its answer goes, and an answer about its question: lines of the envelope.

/// Where the answer to a question goes.
struct AnswerAddress: Sendable, Hashable {
    /// The number of the question at the post office that asks.
    var number: UInt64
    /// The time after the question was stored for which the post office waits, in milliseconds.
    var patience: Int
    /// The mailbox of the post office that asks.
    var mailbox: String

    /// The beginning of the names of mailboxes for answers.
    static let prefix = "answers-"

    init(number: UInt64, patience: Int, mailbox: String) {
        (self.number, self.patience, self.mailbox) = (number, patience, mailbox)
    }

    /// - Parameter line: what ``line`` has made.
    init?(line: String) {
        let parts = line.split(separator: " ", maxSplits: 2).map(String.init)
        guard parts.count == 3, let number = UInt64(parts[0]), let patience = Int(parts[1]), patience >= 0 else {
            return nil
        }
        // Another program may have written the line: nothing is sent to a mailbox that is not for answers.
        guard parts[2].hasPrefix(Self.prefix), parts[2].utf8.count <= 64 else { return nil }
        self.init(number: number, patience: patience, mailbox: parts[2])
    }

    var line: String { "\(number) \(patience) \(mailbox)" }
}

/// The question that a message answers.
struct AnsweredQuestion: Sendable, Hashable {
    /// As in ``AnswerAddress``.
    var number: UInt64
    /// Why the question was not answered; `nil` for an answer.
    var failure: String?

    init(number: UInt64, failure: String? = nil) { (self.number, self.failure) = (number, failure) }

    /// - Parameter line: what ``line`` has made.
    init?(line: String) {
        // By bytes: a reason may begin with what would be one character with the space.
        let parts = line.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1, omittingEmptySubsequences: false)
        guard let number = parts.first.flatMap({ UInt64(Substring($0)) }) else { return nil }
        self.init(number: number, failure: parts.count > 1 ? String(Substring(parts[1])) : nil)
    }

    var line: String { failure.map { "\(number) \($0)" } ?? "\(number)" }
}
