extension Settings {
    /// Checks that each argument is an option that exists, is given once, and has one value. Otherwise the default of an
    /// option that is misspelled or given twice would count.
    ///
    /// - Throws: `Fault`, without the value, which may be a secret.
    static func check(_ arguments: [String]) throws {
        var given: Set<Substring> = []
        var words = arguments.dropFirst()
        var last: Substring?
        while let word = words.popFirst() {
            guard word.hasPrefix("--") else {
                throw Fault(
                    description: last.map { "\($0) has more than one value" }
                        ?? "the first argument is no option: --help lists them")
            }
            let name = word.prefix { $0 != "=" }
            guard let isFlag = options[name] else {
                throw Fault(description: "there is no option \(name): --help lists them")
            }
            guard given.insert(name).inserted else { throw Fault(description: "\(name) is given twice") }
            last = name
            if name.endIndex < word.endIndex { continue }
            if let value = words.first, !value.hasPrefix("--") {
                words.removeFirst()
            } else if !isFlag {
                throw Fault(description: "\(name) has no value")
            }
        }
    }

    /// The options of the usage, and whether each may be given without a value, for `true`.
    private static let options: [Substring: Bool] = {
        var options: [Substring: Bool] = [:]
        for line in usage.split(separator: "\n") where line.hasPrefix("  --") {
            let words = line.split(separator: " ")
            options[words[0]] = words[1] == "true"
        }
        return options
    }()
}
