// The ACL users that SECURITY.md describes.
import Foundation
public import Hiredis
import Testing

/// The ACL users of SECURITY.md: its commands `ACL SETUSER`, as a reader would type them.
public struct DocumentedUsers: Sendable {
    /// The commands in the order of the document, each as its words.
    public let commands: [[String]]

    /// Reads SECURITY.md.
    public init() throws {
        let document = packageRoot.appendingPathComponent("SECURITY.md")
        let text = try String(contentsOf: document, encoding: .utf8).replacingOccurrences(of: "\\\n", with: " ")
        commands = text.split(separator: "\n").filter { $0.hasPrefix("ACL SETUSER ") }.map {
            $0.split(separator: " ").map(String.init)
        }
    }

    /// The commands that make a user, with another name in place of the user's if one is given.
    ///
    /// - Parameter name: replaces the user's name also in the patterns of keys and channels.
    public func commands(of user: String, named name: String? = nil) throws -> [[String]] {
        let own = commands.filter { $0.dropFirst(2).first == user && $0.contains { $0.hasPrefix("+") } }
        try #require(!own.isEmpty, "SECURITY.md has no user \(user)")
        guard let name else { return own }
        return own.map { $0.map { $0.replacingOccurrences(of: user, with: name) } }
    }

    /// The Redis commands that a user may run, in small letters: `get`, `client|id`.
    public func permitted(to user: String) throws -> Set<String> {
        Set(try commands(of: user).joined().filter { $0.hasPrefix("+") }.map { $0.dropFirst().lowercased() })
    }

    /// Makes a user on a server, and returns the user's name and password for a URL.
    ///
    /// The first command must be accepted by every server. A later one is for newer servers, and is
    /// left out if the server does not know all of its words.
    public func create(
        _ user: String, named name: String? = nil, on redis: RedisClient
    ) async throws -> (name: String, password: String) {
        let own = try commands(of: user, named: name)
        for (number, command) in own.enumerated() {
            if number > 0, !(try await Self.isKnown(command, redis)) { continue }
            let reply = try await redis.send(RedisCommand(command.map { .string($0) }))
            #expect(reply.string == "OK")
        }
        let password = try #require(own[0].first { $0.hasPrefix(">") })
        return (own[0][2], String(password.dropFirst()))
    }

    private static func isKnown(_ command: [String], _ redis: RedisClient) async throws -> Bool {
        for word in command where word.hasPrefix("+") {
            let name = String(word.dropFirst().prefix { $0 != "|" })
            if !(try await redis.knows(name)) { return false }
        }
        return true
    }
}

extension RedisClient {
    /// Returns whether the server knows a command.
    public func knows(_ command: String) async throws -> Bool {
        try await send("COMMAND", "INFO", .string(command)).array?.first?.isNull == false
    }
}
