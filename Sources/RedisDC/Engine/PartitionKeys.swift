// TEMPORARY until merged with EngineKeys
import CoordinationBase

struct PartitionKeys: Sendable {
    let all: [String]
    /// Without the sessions, which few scripts need.
    let resources: [String]
    private let wakeUpPrefix: String

    init(_ namespace: Namespace, partition: Int) {
        all = ["book", "index", "sessions"].map { namespace.key($0, partition: partition) }
        resources = Array(all.prefix(2))
        wakeUpPrefix = namespace.key("wake:", partition: partition)
    }

    func wakeUpChannel(of session: String) -> String { wakeUpPrefix + session }
}
