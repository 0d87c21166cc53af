import ArgumentParser

/// The `--timeout` option.
struct TimeoutOption: ParsableArguments {
    @Option(help: "The maximum wait in seconds, with decimals; 0 tries once. (default: no limit)")
    var timeout: Double?

    var duration: Duration? { timeout.map { .seconds($0) } }

    func validate() throws {
        if let timeout, !(timeout >= 0 && timeout < 1e9) {
            throw ValidationError("--timeout must be a number of seconds, 0 or more")
        }
    }
}
