// The keys of one partition.
import CoordinationBase

/// A partition's keys in the order of the scripts' `KEYS`. The strings are made once, not for each request.
struct PartitionKeys: Sendable {
    /// State, index, sessions and values.
    let all: [String]
    /// State and index.
    let resources: [String]
    private let wakePrefix: String

    init(_ namespace: Namespace, partition: Int) {
        let keys = EngineKeys(namespace)
        all = keys.scriptKeys(partition: partition)
        resources = Array(all.prefix(2))
        wakePrefix = keys.wakePrefix(partition: partition)
    }

    /// Returns the keys of a request's script: only scripts about sessions and values need all.
    func keys(of request: EngineRequest) -> [String] { request.usesAllKeys ? all : resources }

    func wakeUpChannel(of session: String) -> String { wakePrefix + session }
}
