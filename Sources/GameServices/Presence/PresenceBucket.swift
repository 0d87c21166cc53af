import CoordinationBase
import Hiredis

/// A set of objects whose changes can be followed: a room, a lobby, a match.
///
/// See ``Presence``.
public struct PresenceBucket: Sendable {
    /// The maximum number of bytes of a value.
    public static let maxValueBytes = 16 << 10
    /// The longest grace period.
    public static let maxGrace = Duration.seconds(3600)

    /// The name of the bucket.
    public let name: String
    let presence: Presence
    let keys: PresenceKeys
    var reader: PresenceReader { PresenceReader(redis: presence.redis, keys: keys) }

    private func perform(
        _ operation: PresenceOperation, _ action: @autoclosure () -> String
    ) async throws(GameServiceError) -> PresenceResult {
        while true {
            guard let result = await (try presence.core(self)).perform(operation) else { continue }
            do throws(GameServiceError) { return try result.get() } catch { throw error.prefixed(action()) }
        }
    }

    private func describe(_ key: String) -> String { "\"\(key)\" in bucket \"\(name)\"" }

    // MARK: Owners

    /// Registers a client as connected to this process.
    ///
    /// If the client is connected already, at this process or at another one, this connection takes
    /// its place, and its objects stay. If it was gone, its objects stay as well, unless their grace
    /// periods have passed.
    ///
    /// A cancelled call leaves no connection.
    ///
    /// - Parameters:
    ///   - user: 1 to 256 bytes of UTF-8 without control characters and braces.
    ///   - client: a device or a window, unique among those of the user: as for `user`.
    /// - Returns: the connection. End it with ``disconnect(_:)``.
    /// - Throws: `.invalidArgument`, `.cancelled`, `.connectionLost`, `.notConnected`, `.stopped` and
    ///   other failures of a command.
    public func connect(user: String, client: String) async throws(GameServiceError) -> PresenceOwner {
        try PresenceKeys.validate(user, "user")
        try PresenceKeys.validate(client, "client")
        let token = UInt64.random(in: 1 ... .max)
        let result = try await perform(
            .connect(user: user, client: client, token: token),
            "cannot connect client \"\(client)\" of \"\(user)\" to bucket \"\(name)\"")
        return PresenceOwner(user: user, client: client, session: result.session, token: token)
    }

    /// Ends a connection: the grace periods of the client's objects begin, and those of the user's
    /// objects if this was the user's last client.
    ///
    /// The disconnect is carried out even if the call is cancelled, or fails because Redis cannot be
    /// reached: as soon as it can be, or when the session expires.
    ///
    /// - Returns: whether the connection still was the client's. A client that has connected again
    ///   elsewhere stays connected.
    /// - Throws: `.cancelled`, `.connectionLost`, `.notConnected`, `.stopped` and other failures of a
    ///   command.
    @discardableResult
    public func disconnect(_ owner: PresenceOwner) async throws(GameServiceError) -> Bool {
        try await perform(
            .disconnect(owner), "cannot disconnect \"\(owner.client)\" of \"\(owner.user)\" from bucket \"\(name)\""
        ).status == .done
    }

    /// Returns the connections that end without ``disconnect(_:)``, because the process's session in
    /// the bucket has ended. The stream ends with ``Presence/run()``.
    ///
    /// - Throws: `.stopped`.
    public func losses() async throws(GameServiceError) -> AsyncStream<PresenceLoss> {
        while true {
            if let stream = await (try presence.core(self)).losses() { return stream }
        }
    }

    // MARK: Objects

    /// Puts an object, or replaces its value, owner, scope and grace period.
    ///
    /// - Parameters:
    ///   - key: 1 to 256 bytes of UTF-8 without control characters and braces.
    ///   - value: at most ``maxValueBytes``.
    ///   - owner: the connection on which the object depends.
    ///   - scope: whether it leaves when the client is gone, or when the user's last client is.
    ///   - grace: how long the object stays after that, 0 to 1 h, in whole milliseconds.
    ///   - onlyNew: whether to refuse to replace an object.
    /// - Returns: the version of the object.
    /// - Throws: `.invalidArgument`; `.taken` when the key has an object of another user, or any with
    ///   `onlyNew`; `.superseded` and `.lost` when `owner` has ended; `.cancelled`, `.connectionLost`,
    ///   `.notConnected`, `.stopped` and other failures of a command.
    @discardableResult
    public func put(
        _ key: String, _ value: [UInt8], owner: PresenceOwner, scope: PresenceScope = .client,
        grace: Duration = .zero, onlyNew: Bool = false
    ) async throws(GameServiceError) -> Int {
        try validate(key, value)
        guard (.zero...Self.maxGrace).contains(grace) else {
            throw GameServiceError(.invalidArgument, "grace is \(grace), expected 0 to 1 h")
        }
        let result = try await perform(
            .put(
                owner, key: key, value: value, scope: scope, graceMilliseconds: grace.wholeMilliseconds,
                onlyNew: onlyNew), "cannot put \(describe(key))")
        return try version(of: result, key, "put")
    }

    /// Puts a text.
    ///
    /// - Throws: as ``put(_:_:owner:scope:grace:onlyNew:)-(_,[UInt8],_,_,_,_)``.
    @discardableResult
    public func put(
        _ key: String, _ text: String, owner: PresenceOwner, scope: PresenceScope = .client,
        grace: Duration = .zero, onlyNew: Bool = false
    ) async throws(GameServiceError) -> Int {
        try await put(key, Array(text.utf8), owner: owner, scope: scope, grace: grace, onlyNew: onlyNew)
    }

    /// Replaces the value of an object, whoever owns it. Its owner, scope and grace period stay.
    ///
    /// - Parameter version: the version that the object must have, so that no other update is
    ///   overwritten; `nil` for any.
    /// - Returns: the new version of the object.
    /// - Throws: `.changed` when there is no such object or it has another version, and as
    ///   ``put(_:_:owner:scope:grace:onlyNew:)-(_,[UInt8],_,_,_,_)``.
    @discardableResult
    public func update(_ key: String, _ value: [UInt8], version: Int? = nil) async throws(GameServiceError) -> Int {
        try validate(key, value)
        let result = try await perform(
            .update(key: key, value: value, version: version), "cannot update \(describe(key))")
        return try self.version(of: result, key, "update")
    }

    /// Removes an object of the owner's user.
    ///
    /// - Returns: whether there was such an object.
    /// - Throws: as ``put(_:_:owner:scope:grace:onlyNew:)-(_,[UInt8],_,_,_,_)``.
    @discardableResult
    public func remove(_ key: String, owner: PresenceOwner) async throws(GameServiceError) -> Bool {
        try validate(key, [])
        let result = try await perform(.remove(owner, key: key), "cannot remove \(describe(key))")
        if result.status == .changed { return false }
        _ = try version(of: result, key, "remove")
        return true
    }

    private func validate(_ key: String, _ value: [UInt8]) throws(GameServiceError) {
        try PresenceKeys.validate(key, "key")
        guard value.count <= Self.maxValueBytes else {
            throw GameServiceError(
                .invalidArgument,
                "a value has at most \(Self.maxValueBytes) bytes, that of \(describe(key)) has \(value.count)")
        }
    }

    private func version(
        of result: PresenceResult, _ key: String, _ action: String
    ) throws(GameServiceError) -> Int {
        let what = "cannot \(action) \(describe(key))"
        switch result.status {
        case .done: return result.version
        case .superseded: throw GameServiceError(.superseded, "\(what): its client has connected again or is gone")
        case .taken: throw GameServiceError(.taken, "\(what): there is such an object")
        case .changed where result.version == 0: throw GameServiceError(.changed, "\(what): there is no such object")
        case .changed: throw GameServiceError(.changed, "\(what): it has version \(result.version)")
        }
    }

    // MARK: Reading

    /// Returns an object, for an ``update(_:_:version:)`` of what was read; `nil` if there is none.
    ///
    /// - Throws: `.invalidArgument`, and failures of a command.
    public func object(_ key: String) async throws(GameServiceError) -> PresenceObject? {
        try validate(key, [])
        do throws(GameServiceError) { return try await reader.object(key) } catch {
            throw error.prefixed("cannot read \(describe(key))")
        }
    }

    /// Returns all objects at one version. It is read in pages; objects that change meanwhile are
    /// brought to the version of the last page by the log of changes.
    ///
    /// - Throws: `.busy` when more changes are made than the log holds while it is read, and failures
    ///   of a command.
    public func snapshot() async throws(GameServiceError) -> PresenceSnapshot {
        presence.instruments.snapshot()
        do throws(GameServiceError) { return try await reader.snapshot() } catch {
            throw error.prefixed("cannot read bucket \"\(name)\"")
        }
    }

    /// Returns the changes of the bucket as an endless sequence, which begins with a snapshot.
    ///
    /// Several sequences of a process share one subscription. The sequence continues through every
    /// broken connection and every restart of Redis.
    ///
    /// - Parameter position: the position of a snapshot, to begin with the changes after it; if they
    ///   are no longer known, the sequence begins with a gap and a snapshot.
    /// - Returns: a sequence that throws `.cancelled`, `.stopped`, `.notPermitted`, `.wrongType` and
    ///   other failures of a command that are not transient.
    public func changes(after position: PresencePosition? = nil) -> PresenceChanges {
        PresenceChanges(bucket: self, position: position)
    }
}
