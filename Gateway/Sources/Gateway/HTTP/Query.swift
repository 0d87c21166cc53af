import Hummingbird
import HummingbirdCore
import QueueListen

/// The query of a request.
struct Query {
    private let parameters: [(name: String, value: String)]

    init(_ request: Request) { self.init(target: request.head.path ?? "") }

    /// - Parameter target: a path and a query, as they were sent.
    init(target: String) {
        parameters = URI(target).queryParameters.map { (String($0.key), String($0.value)) }
    }

    /// Returns a parameter; `nil` if it is missing.
    ///
    /// - Throws: `malformed` if it is given twice.
    func text(_ name: String) throws(Problem) -> String? {
        let values = parameters.filter { $0.name == name }
        guard values.count < 2 else { throw Problem(.malformed, "the parameter \(name) is given twice") }
        return values.first?.value
    }

    func cursor(_ name: String) throws(Problem) -> Cursor? {
        guard let text = try text(name) else { return nil }
        guard let cursor = Cursor(text) else { throw Problem(.malformed, "the parameter \(name) is not a cursor") }
        return cursor
    }

    func integer(_ name: String, _ range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let text = try text(name) else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw Problem(
                .malformed, "the parameter \(name) is a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }
}
