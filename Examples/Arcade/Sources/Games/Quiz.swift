/// The rules of the quiz: up to four players answer questions by turns, and points fall with time.
///
/// All times are milliseconds of one clock, that of Redis.
public struct Quiz: Sendable, Hashable, Codable {
    /// The choices of the host.
    public struct Settings: Sendable, Hashable, Codable {
        /// The name by which others find the game, 1 to 32 characters.
        public var name: String
        /// At least one.
        public var categories: [String]
        /// The number of questions, at most as many as the categories have.
        public var questions: Int
        /// The time for an answer in seconds, 3 to 60.
        public var seconds: Int

        /// Creates settings. The game checks them.
        public init(name: String, categories: [String], questions: Int, seconds: Int) {
            (self.name, self.categories, self.questions, self.seconds) = (name, categories, questions, seconds)
        }
    }

    /// A violation of the rules.
    public enum IllegalAction: Error, Sendable, Hashable {
        case invalidSettings
        case hasStarted
        case isFull
        case notTheHost
        case notYourTurn
        case noSuchAnswer
        /// The question is not shown yet, or another one is.
        case otherQuestion
    }

    /// A question of this game.
    public struct Question: Sendable, Hashable, Codable {
        public var category: String
        /// The index in the category.
        public var index: Int
        /// The order in which the answers are shown.
        public var order: [Int]

        /// The question; `nil` if the category has no such one.
        public var content: QuizQuestion? {
            guard let questions = QuizQuestion.all[category], questions.indices.contains(index) else { return nil }
            return questions[index]
        }
        /// The place of the right answer.
        public var right: Int { order.firstIndex(of: 0) ?? 0 }
    }

    /// The last event.
    public struct Event: Sendable, Hashable, Codable {
        /// The player who answered, or was too late.
        public var player: String
        /// The question.
        public var question: Int
        /// The place of the answer; `nil` for none in time.
        public var answer: Int?
        public var points: Int
        /// The right answer, if the question is over.
        public var right: String?

        /// Creates an event.
        public init(player: String, question: Int, answer: Int?, points: Int) {
            (self.player, self.question, self.answer, self.points) = (player, question, answer, points)
        }
    }

    /// The greatest number of players.
    public static let maxPlayers = 4
    /// The points of an answer at once. They fall to 0 within ``fallMilliseconds``.
    public static let maxPoints = 100
    /// The time in which the points fall.
    public static let fallMilliseconds = 10_000
    /// The time between the start, or the end of a question, and the next one.
    public static let pauseMilliseconds = 3_000

    /// The settings.
    public let settings: Settings
    /// The host.
    public let host: String
    /// The players, the host first. No player joins after the start; players who leave then stay in the list.
    public private(set) var players: [String]
    /// The players who have left after the start.
    public private(set) var left: Set<String> = []
    /// The points of each player.
    public private(set) var points: [Int]
    /// All questions, none twice.
    public private(set) var questions: [Question] = []
    /// The current question; `nil` before the start. The number of questions after the last one.
    public private(set) var current: Int?
    /// The place of the player whose turn it is.
    public private(set) var turn = 0
    /// The time at which the question is shown to the player whose turn it is.
    public private(set) var shown = 0
    /// The number of players who have had a turn with the current question.
    public private(set) var asked = 0
    /// The last event.
    public private(set) var last: Event?
    /// The id of each player's last answer, by which a repeated call is recognized.
    private var lastAnswers: [String: String] = [:]

    /// A game that is open for players.
    public init(host: String, _ settings: Settings) throws(IllegalAction) {
        let available = Set(settings.categories).reduce(0) { $0 + (QuizQuestion.all[$1]?.count ?? 0) }
        guard (1...32).contains(settings.name.count), settings.name.utf8.count <= 256, !settings.categories.isEmpty,
            settings.categories.count == Set(settings.categories).count,
            settings.categories.allSatisfy({ QuizQuestion.all[$0] != nil }),
            (1...max(1, available)).contains(settings.questions),
            (3...60).contains(settings.seconds)
        else { throw .invalidSettings }
        (self.settings, self.host, players, points) = (settings, host, [host], [0])
    }

    /// Whether players can join.
    public var isOpen: Bool { current == nil && players.count < Self.maxPlayers }
    /// Whether the game has ended.
    public var isOver: Bool { current == settings.questions }
    /// The current question while there is one.
    public var question: Question? { current.flatMap { questions.indices.contains($0) ? questions[$0] : nil } }
    /// The player whose turn it is, while there is a question.
    public var player: String? { question == nil ? nil : players[turn] }
    /// The time after which the turn of the player is over.
    public var deadline: Int { shown + settings.seconds * 1000 }

    /// Adds a player.
    ///
    /// - Returns: whether the game has changed; `false` for a player who has joined already.
    public mutating func join(_ player: String) throws(IllegalAction) -> Bool {
        guard !players.contains(player) else { return false }
        guard current == nil else { throw .hasStarted }
        guard isOpen else { throw .isFull }
        players.append(player)
        points.append(0)
        return true
    }

    /// Removes a player other than the host, with whom the game ends.
    ///
    /// - Returns: whether the game has changed.
    public mutating func leave(_ player: String) -> Bool {
        guard player != host, let place = players.firstIndex(of: player) else { return false }
        guard current == nil else { return left.insert(player).inserted }
        players.remove(at: place)
        points.remove(at: place)
        return true
    }

    /// Removes the players who have gone before the start, so that others can join.
    ///
    /// - Parameter isPresent: whether a player is there.
    /// - Returns: whether the game has changed; `false` after the start.
    public mutating func removeAbsent(isPresent: (String) -> Bool) -> Bool {
        guard current == nil else { return false }
        var hasChanged = false
        for player in players where !isPresent(player) { hasChanged = leave(player) || hasChanged }
        return hasChanged
    }

    /// Starts the game, and so locks it.
    ///
    /// - Returns: whether the game has changed; `false` if it has started already.
    public mutating func start(
        by player: String, at now: Int, using generator: inout some RandomNumberGenerator
    ) throws(IllegalAction) -> Bool {
        guard player == host else { throw .notTheHost }
        guard current == nil else { return false }
        let available = Set(settings.categories).flatMap { category in
            QuizQuestion.all[category, default: []].indices.map { (category, $0) }
        }
        questions = available.shuffled(using: &generator).prefix(settings.questions).map { category, index in
            Question(category: category, index: index, order: (0..<4).shuffled(using: &generator))
        }
        current = 0
        shown = now + Self.pauseMilliseconds
        return true
    }

    /// Answers the current question.
    ///
    /// - Parameters:
    ///   - answer: the place of the answer, 0 to 3.
    ///   - question: the question that the player has seen.
    ///   - id: the id of the call.
    /// - Returns: whether the game has changed; `false` for the player's last answer again.
    public mutating func answer(
        _ answer: Int, to question: Int, by player: String, id: String, at now: Int
    ) throws(IllegalAction) -> Bool {
        guard lastAnswers[player] != id else { return false }
        guard let content = self.question, question == current, now >= shown else { throw .otherQuestion }
        guard player == self.player, now <= deadline else { throw .notYourTurn }
        guard (0..<4).contains(answer) else { throw .noSuchAnswer }
        lastAnswers[player] = id
        let isRight = answer == content.right
        let left = max(0, Self.fallMilliseconds - (now - shown))
        let gained = isRight ? Self.maxPoints * left / Self.fallMilliseconds : 0
        points[turn] += gained
        last = Event(player: player, question: question, answer: answer, points: gained)
        if isRight { endQuestion(at: now) } else { pass(at: now) }
        return true
    }

    /// Ends the turn of a player whose time is over, or who has gone.
    ///
    /// - Parameter isPresent: whether a player is there.
    /// - Returns: whether the game has changed.
    public mutating func advance(at now: Int, isPresent: (String) -> Bool) -> Bool {
        guard let player, now > deadline || left.contains(player) || !isPresent(player) else { return false }
        last = Event(player: player, question: current ?? 0, answer: nil, points: 0)
        pass(at: now)
        return true
    }

    /// The next player has the same question; after the last one it is over.
    private mutating func pass(at now: Int) {
        asked += 1
        guard asked < players.count else { return endQuestion(at: now) }
        turn = (turn + 1) % players.count
        shown = now
    }

    private mutating func endQuestion(at now: Int) {
        if let question = self.question { last?.right = question.content?.answers[0] }
        let next = (current ?? 0) + 1
        (current, asked, turn, shown) = (next, 0, next % players.count, now + Self.pauseMilliseconds)
    }
}
