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

    /// Returns the variables with one replaced or added.
    package static func variables(with name: String, _ value: String) -> [[UInt8]] {
        let prefix = Array("\(name)=".utf8)
        return variables.filter { !$0.starts(with: prefix) } + [prefix + Array(value.utf8)]
    }
}
