import Hummingbird
import Logging

/// The context of a request without a connection.
struct LocalContext: RequestContext {
    struct Source: RequestContextSource { let logger: Logger }
    var coreContext: CoreRequestContextStorage

    init(source: Source) { coreContext = .init(source: source) }

    init() { self.init(source: Source(logger: Logger(label: "test"))) }
}
