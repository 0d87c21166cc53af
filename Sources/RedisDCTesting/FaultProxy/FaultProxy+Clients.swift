// Faults that apply to some of a proxy's clients.
extension FaultProxy {
    /// Bytes at a place of the first message of a client, by which the client is recognized.
    struct Introduction: Sendable, Hashable {
        /// The number of first bytes of each client that a proxy keeps.
        static let maxEnd = 80

        /// The number of bytes before it.
        let offset: Int
        let bytes: [UInt8]

        init(offset: Int, bytes: [UInt8]) {
            precondition(offset >= 0 && offset + bytes.count <= Self.maxEnd, "only \(Self.maxEnd) bytes are kept")
            self.offset = offset
            self.bytes = bytes
        }

        /// Returns whether a client that has sent these bytes first is meant, or nil if it has not sent enough.
        func matches(_ firstBytes: [UInt8]) -> Bool? {
            guard firstBytes.count >= self.offset + self.bytes.count else { return nil }
            return firstBytes[self.offset...].starts(with: self.bytes)
        }
    }

    /// Stops forwarding, in both directions, for clients that introduce themselves in this way.
    ///
    /// It applies to open and to new connections. Clients that have not sent enough bytes yet to be recognized are held
    /// back until they have.
    func stallClients(_ introduction: Introduction) async {
        await self.onLoop { $0.stallClients(introduction) }
    }

    /// Ends a stall of clients, and resets their connections: what they have sent meanwhile does not arrive.
    func unstallClients(_ introduction: Introduction) async {
        await self.onLoop { $0.unstallClients(introduction) }
    }
}
