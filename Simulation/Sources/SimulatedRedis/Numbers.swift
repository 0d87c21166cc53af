// Numbers as Redis reads and writes them.

import RedisLua

extension Bytes {
    /// The integer that these bytes are in the only form that Redis takes: no sign but `-`, no zeros in front, no spaces.
    var integer: Int64? {
        let isNegative = array.first == UInt8(ascii: "-")
        let digits = isNegative ? array.dropFirst() : array[...]
        guard let first = digits.first, digits.count <= 19 else { return nil }
        if first == UInt8(ascii: "0") { return digits.count == 1 && !isNegative ? 0 : nil }
        var value: Int64 = 0
        for digit in digits {
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            let (tens, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            // Downwards, because there is one more negative number.
            let (sum, isTooSmall) = tens.subtractingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
            if isTooLarge || isTooSmall { return nil }
            value = sum
        }
        if isNegative { return value }
        return value == .min ? nil : -value
    }

    /// The floating-point number that these bytes are. `inf` is one, and `nan` is none.
    var double: Double? {
        var number = 0.0
        let isNumber = array.withUnsafeBytes { memory in
            redis_lua_parse_number(memory.baseAddress?.assumingMemoryBound(to: CChar.self), memory.count, &number)
        }
        return isNumber == 1 ? number : nil
    }

    /// Reads an argument as an integer.
    func requireInteger(_ error: RedisError = .notInteger) throws(RedisError) -> Int64 {
        guard let integer else { throw error }
        return integer
    }

    /// Reads an argument as a floating-point number.
    func requireDouble(_ error: RedisError = .notFloat) throws(RedisError) -> Double {
        guard let double else { throw error }
        return double
    }
}

/// How a server writes floating-point numbers.
public enum NumberFormat: Hashable, Sendable {
    /// With 17 significant digits, as Redis up to 7.0.
    case seventeenDigits
    /// With as few digits as identify the number, as Redis 8 and Valkey 9.
    case shortest

    /// Returns a score as text.
    func score(_ number: Double) -> Bytes {
        if number.isInfinite { return number < 0 ? "-inf" : "inf" }
        if number == 0 { return number.sign == .minus ? "-0" : "0" }
        // Whole numbers, fast.
        if number == number.rounded(), abs(number) < 1e15 { return Bytes(Int64(number)) }
        return argument(number)
    }

    /// Returns the text of a number that a script passes to a command.
    func argument(_ number: Double) -> Bytes {
        guard self == .shortest, number.isFinite else { return seventeen(number) }
        if number == number.rounded(), abs(number) < 9.2e18 { return Bytes(Int64(number)) }
        return shortest(number)
    }

    private func seventeen(_ number: Double) -> Bytes {
        let array = [UInt8](unsafeUninitializedCapacity: 64) { memory, count in
            memory.withMemoryRebound(to: CChar.self) { text in
                count = redis_lua_format_number(number, text.baseAddress, 64)
            }
        }
        return Bytes(array)
    }

    /// Few zeros are written, many become an exponent.
    private func shortest(_ number: Double) -> Bytes {
        let (digits, scale) = Self.digits(abs(number))
        let exponent = scale + digits.count - 1
        let sign = number.sign == .minus ? "-" : ""
        if scale >= 0, exponent < digits.count + 7 {
            return Bytes(sign + digits + String(repeating: "0", count: scale))
        }
        if scale < 0, scale > -7 || abs(exponent) < 4 {
            let whole = digits.count + scale
            if whole <= 0 { return Bytes(sign + "0." + String(repeating: "0", count: -whole) + digits) }
            return Bytes(sign + digits.prefix(whole) + "." + digits.dropFirst(whole))
        }
        let fraction = digits.count > 1 ? "." + digits.dropFirst() : ""
        return Bytes(sign + digits.prefix(1) + fraction + "e" + (exponent < 0 ? "-" : "+") + String(abs(exponent)))
    }

    /// The shortest digits of a number and the power of ten of the last one.
    private static func digits(_ number: Double) -> (digits: String, scale: Int) {
        let parts = number.description.split(separator: "e", maxSplits: 1)
        var digits = String(parts[0])
        var scale = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
        if let point = digits.firstIndex(of: ".") {
            scale -= digits.distance(from: point, to: digits.endIndex) - 1
            digits.remove(at: point)
        }
        digits = String(digits.drop { $0 == "0" })
        while digits.count > 1, digits.last == "0" {
            digits.removeLast()
            scale += 1
        }
        return (digits.isEmpty ? "0" : digits, digits.isEmpty ? 0 : scale)
    }
}
