#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The state of a game whose players are present: objects by key, of which each node has a copy.
public protocol Lobby: Sendable {
    /// The complete view of one player.
    associatedtype View: Encodable, Sendable

    /// An empty lobby.
    init()

    /// The object of a player who has just come, as JSON.
    static var newPlayer: [UInt8] { get }

    /// Sets the object with this key, `player:NAME` for a player, or removes it.
    ///
    /// - Parameter value: JSON. A value that cannot be decoded counts as none.
    /// - Returns: the players whose view may have changed.
    @discardableResult
    mutating func set(_ key: String, to value: [UInt8]?) -> Set<String>

    /// The view of one player.
    func view(of player: String) -> View
}

extension Lobby {
    /// The kind and the name of a key `KIND:NAME`.
    static func parts(of key: String) -> (kind: String, name: String) {
        let parts = key.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
    }

    /// A value from its JSON; `nil` if it cannot be decoded.
    static func decode<Value: Decodable>(_ type: Value.Type, _ json: [UInt8]?) -> Value? {
        json.flatMap { try? JSONDecoder().decode(type, from: Data($0)) }
    }
}
