// The sends that Redis has confirmed lately, to be sent again if it loses them.
import CoordinationBase
import DequeModule
import Hiredis

/// A send that Redis has confirmed.
struct ConfirmedSend: ConfirmedRequest {
    /// The index of the first message in a recipient's mailbox, and the mailbox's epoch.
    typealias Result = (firstIndex: Int, epoch: UInt64)

    var encodedSend: EncodedSend
    var request: SendScriptRequest
    /// Whether it was confirmed as soon as it was carried out: it waited for no replica and no disk.
    var isInOrder: Bool
    /// For each recipient.
    var results: [Result]
    let sentAt: Duration
    var confirmedAt: Duration
    /// The time until which Redis certainly keeps the answer to the request, so that repeating it has one effect.
    var repeatableUntil: Duration

    // Its answer.
    var recordCount: Int { 1 }

    /// About the number of bytes that it takes.
    var size: Int {
        let overhead = 256
        return encodedSend.contents.reduce(overhead) { $0 + $1.envelope.count + $1.collapseKey.utf8.count + 64 }
            + encodedSend.recipients.reduce(0) { $0 + $1.utf8.count + 64 }
    }
}

/// The last confirmed sends of a sender, the oldest first.
///
/// They are bounded by their bytes and by the time between the first and the last one: while Redis confirms nothing, it
/// loses nothing more, and all of them are kept.
///
/// Most sends are one small message to one recipient, and are copied into blocks, one after the other. To keep their arrays
/// would cost more: what is freed half a minute later is in no cache.
struct ConfirmedSends: Sendable {
    /// A send: what is not in the blocks of one that is copied there. Without references, so that it is moved as bytes.
    private struct Entry {
        var number = 0
        var firstIndex = 0
        var epoch: UInt64 = 0
        var life = 0
        var sentAt = Duration.zero
        var confirmedAt: Duration
        var place: UInt16 = 0
        var nameCount: UInt16 = 0
        var envelopeCount: UInt16 = 0
        var keyCount: UInt8 = 0
        var isInOrder = false
        /// Whether it is the next one of those that are not copied.
        var isWhole = false

        /// The number of bytes in the blocks.
        var packedCount: Int { Int(keyCount) + Int(nameCount) + Int(envelopeCount) }
        var packedSize: Int { MemoryLayout<Self>.stride + packedCount }
    }

    /// A send that is not copied.
    private struct Whole {
        let send: ConfirmedSend
        let size: Int
    }

    private static let blockSize = 1 << 15
    /// The size of the largest envelope that is copied.
    private static let maxEnvelope = 1 << 12

    let maxBytes: Int
    let maxAge: Duration
    /// A request in a place of the sender, but for its number and place.
    private let placed: SendScriptRequest
    /// The time for which Redis certainly keeps the answer to one.
    private let answerLifetime: Duration
    private var entries = Deque<Entry>()
    private var wholes = Deque<Whole>()
    private var bytes = 0
    /// The blocks before the last one.
    private var fullBlocks = Deque<[UInt8]>()
    private var block: [UInt8] = []
    /// One that can be filled again: a large allocation makes the next small ones slower.
    private var spareBlock: [UInt8] = []
    /// The number of bytes at the beginning of the first block whose sends are forgotten.
    private var forgottenCount = 0

    init(maxBytes: Int, maxAge: Duration, placed: SendScriptRequest, answerLifetime: Duration) {
        (self.maxBytes, self.maxAge) = (maxBytes, maxAge)
        (self.placed, self.answerLifetime) = (placed, answerLifetime)
    }

    var isEmpty: Bool { entries.isEmpty }

    mutating func append(_ send: ConfirmedSend) {
        guard maxBytes > 0, maxAge > .zero else { return }
        if let entry = pack(send) {
            entries.append(entry)
            bytes += entry.packedSize
        } else {
            let whole = Whole(send: send, size: send.size)
            guard whole.size <= maxBytes else { return }
            entries.append(Entry(confirmedAt: send.confirmedAt, isWhole: true))
            wholes.append(whole)
            bytes += whole.size
        }
        while bytes > maxBytes || entries[0].confirmedAt + maxAge < send.confirmedAt { removeFirst() }
    }

    /// Removes all of them, to be checked and appended again.
    mutating func takeAll() -> [ConfirmedSend] {
        defer { (entries, wholes, bytes, fullBlocks, block, spareBlock, forgottenCount) = ([], [], 0, [], [], [], 0) }
        var wholes = wholes
        var blocks = (fullBlocks + [block])[...]
        var (rest, skipped) = ([UInt8]()[...], forgottenCount)
        return entries.map { entry in
            if entry.isWhole { return wholes.removeFirst().send }
            while rest.isEmpty, let next = blocks.popFirst() { (rest, skipped) = (next.dropFirst(skipped), 0) }
            func next(_ count: some BinaryInteger) -> ArraySlice<UInt8> {
                defer { rest = rest.dropFirst(Int(count)) }
                return rest.prefix(Int(count))
            }
            return unpack(
                entry, name: String(decoding: next(entry.nameCount), as: UTF8.self),
                collapseKey: String(decoding: next(entry.keyCount), as: UTF8.self),
                envelope: Array(next(entry.envelopeCount)))
        }
    }

    private mutating func removeFirst() {
        let entry = entries.removeFirst()
        if entry.isWhole {
            bytes -= wholes.removeFirst().size
            return
        }
        bytes -= entry.packedSize
        forgottenCount += entry.packedCount
        if let first = fullBlocks.first, forgottenCount == first.count {
            spareBlock = fullBlocks.removeFirst()
            forgottenCount = 0
        }
    }

    // MARK: Blocks

    /// Copies a send, if it is one small message to one recipient in a place of the sender.
    private mutating func pack(_ send: ConfirmedSend) -> Entry? {
        guard let place = send.request.place, send.encodedSend.contents.count == 1,
            send.encodedSend.recipients.count == 1, send.encodedSend.shares == nil, case .send = send.request.mode,
            send.repeatableUntil == send.sentAt + answerLifetime
        else { return nil }
        // The elements are used in their arrays: to copy them costs more than to copy their bytes.
        let (name, result) = (send.encodedSend.recipients[0].utf8, send.results[0])
        let envelopeCount = send.encodedSend.contents[0].envelope.count
        guard envelopeCount <= Self.maxEnvelope else { return nil }
        let entry = Entry(
            number: send.request.number, firstIndex: result.firstIndex, epoch: result.epoch,
            life: send.encodedSend.contents[0].life, sentAt: send.sentAt, confirmedAt: send.confirmedAt,
            place: UInt16(place), nameCount: UInt16(name.count), envelopeCount: UInt16(envelopeCount),
            keyCount: UInt8(send.encodedSend.contents[0].collapseKey.utf8.count), isInOrder: send.isInOrder)
        guard entry.packedSize <= maxBytes else { return nil }
        if block.count > Self.blockSize - 2 * Self.maxEnvelope {
            if fullBlocks.isEmpty, forgottenCount == block.count {
                forgottenCount = 0
            } else {
                fullBlocks.append(block)
            }
            block = []
            swap(&block, &spareBlock)
            block.removeAll(keepingCapacity: true)
        }
        if block.isEmpty { block.reserveCapacity(Self.blockSize) }
        block.append(contentsOf: name)
        if !send.encodedSend.contents[0].collapseKey.isEmpty {
            block.append(contentsOf: send.encodedSend.contents[0].collapseKey.utf8)
        }
        block.append(contentsOf: send.encodedSend.contents[0].envelope)
        return entry
    }

    private func unpack(_ entry: Entry, name: String, collapseKey: String, envelope: [UInt8]) -> ConfirmedSend {
        var request = placed
        (request.number, request.place) = (entry.number, Int(entry.place))
        let content = EncodedSend.Content(life: entry.life, collapseKey: collapseKey, envelope: envelope)
        return ConfirmedSend(
            encodedSend: EncodedSend(contents: [content], recipients: [name]), request: request,
            isInOrder: entry.isInOrder, results: [(entry.firstIndex, entry.epoch)], sentAt: entry.sentAt,
            confirmedAt: entry.confirmedAt, repeatableUntil: entry.sentAt + answerLifetime)
    }
}
