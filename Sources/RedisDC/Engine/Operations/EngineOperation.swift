// An operation of the engine: a type with its script, its arguments, its reply, and the reason why it takes effect once.
//
// The operations of a primitive are declared beside it. Claims.swift has those on claims of all kinds, Resources.swift
// those on resources of all kinds, SessionOperations.swift those that the engine itself requests.
import Hiredis

/// An operation that is carried out by one script on the server.
protocol EngineOperation: Sendable {
    /// The part of the reply that the caller gets. `Int`, `Bool` and `Void` are read from ``EngineReply/done(count:more:)``.
    associatedtype Value: Sendable

    /// The name of the resource; empty for an operation on the session.
    var name: String { get }
    /// The resource as this operation describes it; `nil` when it only names it.
    var describedResource: Resource? { get }
    /// The field of the resource, as the arguments of a request name it.
    var field: String { get }
    /// Why the operation takes effect once, however often its request arrives.
    var once: Once { get }
    /// What the process does if Redis has confirmed the operation and then loses it in a failover.
    var remedy: Remedy { get }
    /// The number of bytes of the application that the operation has.
    var payloadBytes: Int { get }
    /// Whether this operation is remembered as the other one: both have the same script, with the same arguments. Only those
    /// that programs repeat often are compared; others are never equal.
    func isEqual(to other: any EngineOperation) -> Bool
    /// The keys of the script.
    var keys: ScriptKeys { get }
    /// The arguments of the script. Those of the request precede them, unless it is `.idempotent`: see slots.lua.
    var arguments: [RedisArgument] { get }

    /// The script, if `family` serves the resource; `nil` is the family that the operation expects.
    func script(_ family: Family?) -> RedisScript
    /// Reads a reply that is a number.
    ///
    /// - Parameter more: see ``EngineReply/done(count:more:)``.
    /// - Returns: `nil` if the script never sends it.
    func reply(_ number: Int, more: Bool) -> EngineReply?
    /// Reads a reply that begins with `ok`.
    ///
    /// - Returns: `nil` if the script never sends it.
    func reply(ok parts: [RESPValue]) -> EngineReply?
    /// Returns what the caller gets of a reply that is no refusal; `nil` if the script never sends it.
    static func value(of reply: EngineReply) -> Value?
}

/// Why an operation takes effect once, even if its request is sent again after a lost reply.
enum Once: Sendable, Equatable {
    /// The request has a slot that serves nothing else meanwhile, and that keeps its number and its reply.
    case slot
    /// It is about the claim of the caller that the request with this number has made, in the slot of the claim.
    /// `isEnded`: it ends the claim, so that a repetition finds it ended.
    case claim(UInt64, isEnded: Bool)
    /// A repetition has no further effect.
    case idempotent
}

/// The keys that a script needs.
enum ScriptKeys: Sendable {
    /// The state and the index.
    case resources
    /// Also the sessions, and the values of buffers and exchangers.
    case all
    /// Also the ids of a buffer's puts.
    case putIDs(buffer: String)
}

extension EngineOperation {
    var describedResource: Resource? { nil }
    var field: String { "t:" + name }
    var keys: ScriptKeys { .resources }
    var remedy: Remedy { .none }
    var payloadBytes: Int { 0 }
    func isEqual(to other: any EngineOperation) -> Bool { false }

    func reply(_ number: Int, more: Bool) -> EngineReply? { number >= 0 ? .done(count: number, more: more) : nil }
    func reply(ok parts: [RESPValue]) -> EngineReply? { nil }
}

extension EngineOperation where Value == Void {
    static func value(of reply: EngineReply) -> Void? { if case .done = reply { () } else { nil } }
}

extension EngineOperation where Value == Int {
    static func value(of reply: EngineReply) -> Int? { if case .done(let count, _) = reply { count } else { nil } }
}

extension EngineOperation where Value == Bool {
    static func value(of reply: EngineReply) -> Bool? {
        if case .done(let count, _) = reply { count == 1 } else { nil }
    }
}

/// The scripts of the module, each declared beside the operation that it carries out: the files of Scripts/, embedded in
/// the binary at build time. Their sources are in Lua/.
enum Scripts {}

/// The scripts that serve a resource or a claim. The raw value is the word in {'family', WORD}.
enum Family: String, Sendable {
    case permits = "p"
    case groups = "g"
    case meetings = "m"
    /// A participant of a latch.
    case participant = "l"
    /// The lease of a buffer's item that has been read.
    case item = "i"
    /// A destroyed or broken resource, which is being cleared.
    case clearing = "x"

    /// The family of a claim with this mode: see records.lua.
    init(mode: String) {
        switch mode {
        case "t": self = .groups
        case "i": self = .item
        case "a", "r", "e": self = .meetings
        case "p": self = .participant
        default: self = .permits
        }
    }
}

// MARK: Requests

/// A numbered request of a session. It takes effect once, even if it is sent several times under the same number: see
/// slots.lua.
struct EngineRequest: Sendable {
    var session: String
    var number: UInt64
    /// The slot that serves the request, or that has the claim it is about; `nil` when it needs none.
    var slot: Int?
    var operation: any EngineOperation
    /// The family whose script must run, if it is not the one that the operation expects.
    var family: Family?

    var script: RedisScript { operation.script(family) }

    var arguments: [RedisArgument] {
        if operation.once == .idempotent { return operation.arguments }
        return [.string("c:\(session):\(slot ?? 0)"), .string(String(number)), .string(operation.field)]
            + operation.arguments
    }

    /// The change of a slot that this reply proves; `nil` when there is none.
    func change(by reply: EngineReply) -> SlotChange? {
        switch (operation.once, reply) {
        case (.claim(let claim, isEnded: true), .done(count: 1..., _)):
            slot.map { .ended(slot: $0, number: claim) }
        case (.slot, .granted), (.slot, .queued), (.slot, .done), (.slot, .settled):
            slot.map { .written(slot: $0, number: number) }
        default: nil
        }
    }
}

/// A change of a slot that Redis has confirmed. If the slot does not show it, Redis has lost data: a promoted replica
/// lacks the end of the history, never a part in between.
enum SlotChange: Sendable, Equatable {
    /// A request with this number has written to the slot.
    case written(slot: Int, number: UInt64)
    /// The claim of the request with this number has ended.
    case ended(slot: Int, number: UInt64)
}
