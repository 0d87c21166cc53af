import Foundation
import QueueListen

extension Message {
    /// A message to the pages of a player, which receive it as a JSON value.
    ///
    /// - Parameters:
    ///   - type: by which a page selects the handler.
    ///   - collapseKey: a later message with the same key replaces this one if no page has read it.
    init(page value: some Encodable, type: String, ttl: Duration? = nil, collapseKey: String? = nil) throws {
        // The same value is the same text on every node, so that a send under the same id is the same send.
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try self.init(
            json: value, type: type, headers: ["gateway-content": "json"], ttl: ttl, collapseKey: collapseKey,
            encoder: encoder)
    }
}
