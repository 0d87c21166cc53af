import BET

/// The built-in computations and some that only the tests have, by the names in `cases.json`.
///
/// `Tests/Web/cases.js` has the same.
let computationsByName: [String: Computation] = {
    var computations = Computation.builtIn
    computations["answer"] = Computation(0) { _ in 42 }
    computations["sum4"] = Computation(4) { $0[0] + $0[1] + $0[2] + $0[3] }
    computations["nan"] = Computation(1) { _ in .nan }
    computations["infinite"] = Computation(1) { _ in .infinity }
    computations["negativeZero"] = Computation(1) { _ in -0.0 }
    computations["noInteger"] = Computation(1) { _ throws(ArithmeticError) in throw .integerRequired }
    return computations
}()
