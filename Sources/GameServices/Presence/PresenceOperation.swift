/// An operation on a bucket, as `presence_apply` expects it.
enum PresenceOperation: Sendable {
    case connect(user: String, client: String, token: UInt64)
    case disconnect(PresenceOwner)
    case put(PresenceOwner, key: String, value: [UInt8], scope: PresenceScope, graceMilliseconds: Int, onlyNew: Bool)
    case update(key: String, value: [UInt8], version: Int?)
    case remove(PresenceOwner, key: String)

    /// The connection that the operation needs.
    var owner: PresenceOwner? {
        switch self {
        case .disconnect(let owner), .put(let owner, _, _, _, _, _), .remove(let owner, _): owner
        case .connect, .update: nil
        }
    }

    /// Whether it gives a version to an object. The result of another one has the version of the last change by anybody.
    var storesObject: Bool {
        switch self {
        case .put, .update: true
        case .connect, .disconnect, .remove: false
        }
    }

    /// Returns the operation with the version that its object has now, if it expects one that was given again under another
    /// number.
    func expecting(_ versions: [Int: Int]) -> PresenceOperation {
        guard case .update(let key, let value, let version?) = self, let now = versions[version] else { return self }
        return .update(key: key, value: value, version: now)
    }

    var isDisconnect: Bool { if case .disconnect = self { true } else { false } }

    /// The argument of the script.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        func connection(_ letter: Unicode.Scalar, _ owner: PresenceOwner) {
            bytes.append(UInt8(ascii: letter))
            bytes.append(text: owner.user)
            bytes.append(text: owner.client)
            bytes.append(integer: owner.token)
        }
        switch self {
        case .connect(let user, let client, let token):
            connection("c", PresenceOwner(user: user, client: client, session: "", token: token))
        case .disconnect(let owner): connection("d", owner)
        case .put(let owner, let key, let value, let scope, let grace, let onlyNew):
            connection("p", owner)
            bytes.append(UInt8(ascii: scope == .user ? "u" : "c"))
            bytes.append(integer: UInt32(grace))
            bytes.append(onlyNew ? 1 : 0)
            bytes.append(text: key)
            bytes.append(contentsOf: value)
        case .update(let key, let value, let version):
            bytes.append(UInt8(ascii: "u"))
            bytes.append(number: version ?? -1)
            bytes.append(text: key)
            bytes.append(contentsOf: value)
        case .remove(let owner, let key):
            connection("r", owner)
            bytes.append(text: key)
        }
        return bytes
    }
}

/// The result of one operation of a batch.
struct PresenceResult: Sendable, Hashable {
    enum Status: UInt8 {
        case done = 107
        case superseded = 120
        case taken = 116
        case changed = 109
    }
    var status: Status
    /// Of the change, or of the object that prevented it.
    var version: Int
    /// The session that ran the operation.
    var session = ""

    /// Decodes the results of a batch.
    static func decode(_ bytes: [UInt8], session: String) -> [PresenceResult]? {
        var reader = PresenceBytes(bytes)
        var results: [PresenceResult] = []
        while !reader.isEmpty {
            guard let status = reader.integer(UInt8.self).flatMap({ Status(rawValue: $0) }),
                let version = reader.number()
            else { return nil }
            results.append(PresenceResult(status: status, version: version, session: session))
        }
        return results
    }
}
