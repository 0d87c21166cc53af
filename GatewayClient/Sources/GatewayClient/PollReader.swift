/// Reads a mailbox from one node by long polls.
final class PollReader: MailConnection {
    private let client: GatewayClient
    private let node: String
    private var cursor: String?
    /// The first poll does not wait: its reply shows that the gateway can be reached.
    private var wait = 0

    init(_ client: GatewayClient, after cursor: String?, at node: String) {
        self.client = client
        self.cursor = cursor
        self.node = node
    }

    func next() async throws(GatewayError) -> [MailItem]? {
        let configuration = client.configuration
        let items = try await client.reply(
            to: PollCall(after: cursor, wait: wait), at: node,
            within: .seconds(wait) + configuration.requestTimeout)
        if case .position(let position) = items.last { cursor = position }
        wait = min(max(1, configuration.pollWait), 60)
        return [.opened] + items
    }
}
