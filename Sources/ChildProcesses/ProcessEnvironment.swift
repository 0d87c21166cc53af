#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    @preconcurrency import Musl
#else
    @preconcurrency import Glibc
#endif

/// The environment of this process as bytes. Foundation's copy alters what is not UTF-8.
package enum ProcessEnvironment {
    /// The variables, each `NAME=VALUE`.
    ///
    /// No thread may change the environment meanwhile.
    package static var variables: [[UInt8]] {
        #if canImport(Darwin)
            var next = _NSGetEnviron().pointee
        #else
            var next = environ
        #endif
        var variables: [[UInt8]] = []
        while let variable = next.pointee {
            variables.append(Array(UnsafeRawBufferPointer(start: variable, count: strlen(variable))))
            next += 1
        }
        return variables
    }

    /// Returns the variables with some replaced or added.
    package static func variables(with values: [String: String]) -> [[UInt8]] {
        let prefixes = values.keys.map { Array("\($0)=".utf8) }
        return variables.filter { variable in !prefixes.contains { variable.starts(with: $0) } }
            + values.map { Array("\($0.key)=\($0.value)".utf8) }
    }
}
