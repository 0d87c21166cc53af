import Games

/// The players of the duel, each of whom is a document.
struct DuelPlayers: Sendable {
    /// The document of a player.
    struct Player: Codable, Sendable {
        var state = DuelPlayer()
        var friends: [String] = []
        /// The token for push notifications.
        var device: String?
        /// With which the player waits for a random opponent, or has waited.
        var ticket: OpponentSearch.Ticket?
    }

    private let documents: Documents

    /// - Parameter documents: the store, in which the names of these documents begin with `player:`.
    init(_ documents: Documents) { self.documents = documents }

    private static func document(_ name: String) -> String { "player:" + name }

    /// Returns a player, or a new one who has not played yet.
    func read(_ name: String) async throws -> Player { try await existing(name) ?? Player() }

    /// Returns a player; `nil` if nothing is stored.
    func existing(_ name: String) async throws -> Player? {
        try await documents.read(Self.document(name), Player.self)?.value
    }

    /// Changes a player: if another change comes in between, from the new state.
    ///
    /// - Parameter body: returns whether it has changed the player.
    /// - Returns: the player after the change.
    @discardableResult
    func change(_ name: String, _ body: (inout Player) throws -> Bool) async throws -> Player {
        let document = Self.document(name)
        var hasChanged = false
        let read = try await documents.change(document, initial: Player()) { player in
            hasChanged = try body(&player)
            return hasChanged
        }
        // It has no consequences.
        if hasChanged { try await documents.finish(document, version: read.version) }
        return read.value
    }

    /// Removes what is stored of a player.
    func remove(_ name: String) async throws { try await documents.remove(Self.document(name)) }

    /// Removes a document from the list of those that are due, because its node has died after a change.
    func finish(_ document: String) async throws {
        guard let read = try await documents.read(document, Player.self) else { return }
        try await documents.finish(document, version: read.version)
    }
}
