/// The computation of an operator or a function from a fixed number of arguments.
///
/// The built-in computations have bit-identical results in Swift and in JavaScript. A computation
/// of your own has that property if it uses only operations that IEEE 754 specifies exactly:
/// addition, subtraction, multiplication, division, remainder, square root, comparison and rounding
/// to an integer.
public struct Computation: Sendable {
    /// The number of arguments, not negative.
    public let argumentCount: Int

    private let body: @Sendable ([Double]) throws(ArithmeticError) -> Double

    /// Creates a computation.
    ///
    /// - Parameters:
    ///   - argumentCount: the number of arguments, at least 0.
    ///   - body: returns the value for the arguments, of which there are `argumentCount`. It must
    ///     depend on nothing else.
    public init(_ argumentCount: Int, _ body: @escaping @Sendable ([Double]) throws(ArithmeticError) -> Double) {
        precondition(argumentCount >= 0, "the number of arguments is \(argumentCount); it must not be negative")
        self.argumentCount = argumentCount
        self.body = body
    }

    /// Returns the value for the arguments: finite, and never negative zero.
    ///
    /// - Parameter arguments: `argumentCount` numbers, none of them infinite or NaN.
    /// - Throws: `ArithmeticError` of the body; `undefinedValue` if the body returns NaN;
    ///   `overflow` if it returns an infinity.
    public func value(of arguments: [Double]) throws(ArithmeticError) -> Double {
        precondition(arguments.count == argumentCount, "\(arguments.count) arguments, expected \(argumentCount)")
        let value = try body(arguments)
        guard !value.isNaN else { throw .undefinedValue }
        guard value.isFinite else { throw .overflow }
        // Turns negative zero into zero, because JSON.stringify drops its sign and Swift's encoder does not.
        return value + 0
    }
}
