/// A connection of a reader to a node, of any transport. Releasing it closes it.
protocol MailConnection: AnyObject {
    /// Waits for what comes next; `nil` at the end.
    ///
    /// - Throws: the error that has ended the connection.
    func next() async throws(GatewayError) -> [MailItem]?
}
