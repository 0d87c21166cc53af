/// The rules of the word game: letters come up in holes one after another, and words of them score.
///
/// The letters of three words are among those that come, so that a player who catches all letters can spell them.
public struct WordGame: Sendable, Hashable, Codable {
    /// A letter that comes up.
    public struct Letter: Sendable, Hashable, Codable {
        /// `a` to `z`.
        public var letter: String
        /// The hole, 0 to 8.
        public var hole: Int
    }

    /// Words that the rules do not allow.
    public enum IllegalWords: Error, Sendable, Hashable {
        /// A place that is not one of a letter.
        case noSuchLetter
        /// A letter in two words, or twice in one.
        case letterUsedTwice
        /// A letter that has not come up yet.
        case tooEarly
        /// The game has ended, and some time after it too.
        case tooLate
    }

    /// A word with its points.
    public struct ScoredWord: Sendable, Hashable, Codable {
        public var word: String
        /// The square of its length; 0 if it is too short or not in the dictionary.
        public var points: Int
    }

    /// The number of holes.
    public static let holes = 9
    /// The time for which a letter stays up, in seconds. The next one comes when it goes.
    public static let letterSeconds = 2
    /// The length of a game in seconds.
    public static let seconds = 30
    /// The time after the end of a game in which its words are accepted, in seconds.
    public static let overtime = 15
    /// The length of the shortest word that scores.
    public static let minWordLength = 3

    /// The letters in the order in which they come up.
    public private(set) var letters: [Letter] = []

    /// A game with the letters of three words, and random ones until there are enough for its length.
    public init(words: [String], using generator: inout some RandomNumberGenerator) {
        let count = Self.seconds / Self.letterSeconds
        var letters = words.filter { $0.count <= count / 3 }.shuffled(using: &generator).prefix(3).joined().map { $0 }
        while letters.count < count {
            // As often as they are in words, so that most can be used.
            letters.append(words.randomElement(using: &generator)?.randomElement(using: &generator) ?? "e")
        }
        var hole = 0
        for letter in letters.shuffled(using: &generator) {
            // Never twice in the same hole: so a page can show that a letter has gone.
            hole = (hole + Int.random(in: 1..<Self.holes, using: &generator)) % Self.holes
            self.letters.append(Letter(letter: String(letter), hole: hole))
        }
    }

    /// Returns words with their points.
    ///
    /// - Parameters:
    ///   - words: for each word the places of its letters in ``letters``.
    ///   - elapsed: the seconds since the game has begun.
    ///   - isWord: whether the dictionary has a word.
    public func score(
        _ words: [[Int]], elapsed: Double, isWord: (String) -> Bool
    ) throws(IllegalWords) -> [ScoredWord] {
        guard elapsed <= Double(Self.seconds + Self.overtime) else { throw .tooLate }
        var used: Set<Int> = []
        var scored: [ScoredWord] = []
        for word in words {
            var text = ""
            for place in word {
                guard letters.indices.contains(place) else { throw .noSuchLetter }
                guard used.insert(place).inserted else { throw .letterUsedTwice }
                guard Double(place * Self.letterSeconds) <= elapsed else { throw .tooEarly }
                text += letters[place].letter
            }
            let counts = word.count >= Self.minWordLength && isWord(text)
            scored.append(ScoredWord(word: text, points: counts ? word.count * word.count : 0))
        }
        return scored
    }

    /// The level of a player with this sum of scores: 1, and one more for each 50 points.
    public static func level(points: Int) -> Int { 1 + max(0, points) / 50 }
}
