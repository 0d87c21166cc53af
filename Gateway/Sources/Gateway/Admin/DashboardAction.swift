/// A change that an operator can make.
enum DashboardAction: Hashable, Sendable {
    /// Takes a resource from one holder, or from all.
    case release(resource: String, holder: String?)
    /// Sends the oldest dead letters again to the mailboxes that they came from.
    case requeue(mailbox: String, count: Int)

    /// Reads an action; `nil` if it is not complete.
    init?(_ json: JSON) {
        switch json["action"]?.string {
        case "release":
            guard let resource = json["resource"]?.string, !resource.isEmpty else { return nil }
            // All holders only where none is named: a holder in another form than a text is no holder.
            guard let holder = json["holder"] else {
                self = .release(resource: resource, holder: nil)
                return
            }
            guard let holder = holder.string else { return nil }
            self = .release(resource: resource, holder: holder)
        case "requeue":
            guard let mailbox = json["mailbox"]?.string, let count = json["count"]?.integer,
                (1...DashboardReader.maxLetters).contains(count)
            else { return nil }
            self = .requeue(mailbox: mailbox, count: count)
        default: return nil
        }
    }

    /// The question that the operator confirms.
    var question: String {
        switch self {
        case .release(let resource, let holder?):
            "Release \"\(resource)\" in place of the holder \(holder)? Its work is cancelled, but the next waiter may "
                + "start before that work has ended."
        case .release(let resource, nil):
            "Release \"\(resource)\" in place of all its holders? Their work is cancelled, but the next waiters may "
                + "start before that work has ended."
        case .requeue(let mailbox, let count):
            "Send the oldest \(count == 1 ? "dead letter" : "\(count) dead letters") of \"\(mailbox)\" again to the "
                + "mailboxes that they came from?"
        }
    }
}
