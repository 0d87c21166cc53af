import BET

/// The operators and functions from which random expressions are made: those of the standard
/// dialect, redefined at random, and random ones.
struct Vocabulary {
    /// An operator, as a test needs it to write expressions and to compute their values.
    struct Symbol {
        var name: String
        var position: Operator.Position
        var precedence: Int
        var associativity: Operator.Associativity
        var computes: String
    }

    private(set) var operators: [Symbol] = [
        Symbol("+", .infix, 5, "add"), Symbol("-", .infix, 5, "subtract"), Symbol("*", .infix, 6, "multiply"),
        Symbol("/", .infix, 6, "divide"), Symbol("-", .prefix, 7, "negate"),
        Symbol("^", .infix, 8, "power", .right), Symbol("%", .infix, 6, "remainder"),
        Symbol("√", .prefix, 7, "squareRoot"), Symbol("++", .prefix, 7, "increment"),
        Symbol("++", .postfix, 9, "increment"), Symbol("<", .infix, 3, "isLess"),
        Symbol("‹", .infix, 4, "shiftLeft"), Symbol("AND", .infix, 2, "bitwiseAnd"),
        Symbol("OR", .infix, 1, "bitwiseOr"), Symbol("^2", .postfix, 9, "square"),
    ]

    /// The names of the functions, and what they compute.
    private(set) var functions = [
        "floor": "floor", "ceil": "ceiling", "clamp": "clamp", "isqrt": "integerSquareRoot",
    ]

    /// The definitions that make this vocabulary from the standard dialect.
    private(set) var changes: [Case.Change] = []

    /// Creates the vocabulary of the standard dialect with up to 4 random definitions.
    init(using random: inout RandomSource) {
        for _ in 0..<random.pick([0, 0, 1, 2, 4]) {
            if random.isHit(percent: 30) { addFunction(using: &random) } else { addOperator(using: &random) }
        }
    }

    func operators(_ position: Operator.Position) -> [Symbol] { operators.filter { $0.position == position } }

    private mutating func addOperator(using random: inout RandomSource) {
        // A new name, whose position it determines, or one of the standard dialect.
        let added: [(String, Operator.Position)] = [
            ("!", .prefix), ("NOT", .prefix), ("!", .infix), ("é", .infix), ("==", .infix), ("plus", .infix),
            ("🎲", .postfix), ("#", .postfix), ("=", .postfix),
        ]
        let (name, position) = random.pick(added + operators.map { ($0.name, $0.position) })
        let symbol = Symbol(
            name, position, Int.random(in: 0...10, using: &random),
            random.pick(Self.computations(with: position.operandCount)), random.pick([.left, .right]))
        operators.removeAll { $0.name == name && $0.position == position }
        operators.append(symbol)
        changes.append(
            Case.Change(
                operator: name, position: position.rawValue, precedence: symbol.precedence,
                associativity: symbol.associativity.rawValue, computes: symbol.computes))
    }

    private mutating func addFunction(using random: inout RandomSource) {
        let name = random.pick(["f", "_1", "@", "f2", "floor", "clamp"])
        let computes = random.pick((0...4).flatMap(Self.computations(with:)))
        functions[name] = computes
        changes.append(Case.Change(function: name, computes: computes))
    }

    /// Returns the names of the computations with a number of arguments, in the same order in each
    /// run.
    private static func computations(with count: Int) -> [String] {
        computationsByName.filter { $0.value.argumentCount == count }.keys.sorted()
    }
}

extension Vocabulary.Symbol {
    fileprivate init(
        _ name: String, _ position: Operator.Position, _ precedence: Int, _ computes: String,
        _ associativity: Operator.Associativity = .left
    ) {
        self.init(
            name: name, position: position, precedence: precedence, associativity: associativity, computes: computes)
    }
}
