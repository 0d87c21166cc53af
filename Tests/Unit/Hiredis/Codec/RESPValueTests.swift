import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("Conversions of a reply")
struct RESPValueTests {
    @Test("a status and a UTF-8 bulk string convert to a string")
    func string() {
        #expect(RESPValue.status("OK").string == "OK")
        #expect(RESPValue.bytes(Array("naïve".utf8)).string == "naïve")
        #expect(RESPValue.bytes([]).string == "")
        #expect(RESPValue.bytes([0xFF]).string == nil)
        for other in [RESPValue.error("ERR"), .integer(1), .array([]), .null] { #expect(other.string == nil) }
    }

    @Test("an integer and a decimal text convert to an integer")
    func integer() {
        #expect(RESPValue.integer(.min).integer == .min)
        #expect(RESPValue.bytes(Array("-12".utf8)).integer == -12)
        #expect(RESPValue.status("7").integer == 7)
        for other in ["", "1.5", "x", "9223372036854775808"] {
            #expect(RESPValue.bytes(Array(other.utf8)).integer == nil)
        }
        for other in [RESPValue.error("1"), .array([.integer(1)]), .null] { #expect(other.integer == nil) }
    }

    @Test("bytes, arrays, null and errors convert only to their own types")
    func others() {
        #expect(RESPValue.bytes([0, 255]).bytes == [0, 255])
        #expect(RESPValue.status("OK").bytes == [79, 75])
        #expect(RESPValue.array([.null]).array == [.null])
        #expect(RESPValue.null.isNull)
        #expect(RESPValue.error("ERR x").errorMessage == "ERR x")
        for value in [RESPValue.integer(1), .error("e"), .null] { #expect(value.bytes == nil && value.array == nil) }
        for value in [RESPValue.integer(0), .bytes([]), .array([]), .error("")] { #expect(!value.isNull) }
        for value in [RESPValue.status("ERR"), .bytes([]), .null] { #expect(value.errorMessage == nil) }
    }

    @Test("orThrow throws an error reply with the code of its kind and returns other replies")
    func orThrow() throws {
        #expect(try RESPValue.integer(1).orThrow() == .integer(1))
        let error = #expect(throws: RedisError.self) { try RESPValue.error("WRONGTYPE Operation…").orThrow("LPUSH") }
        #expect(error?.code == .wrongType)
        #expect(error?.command == "LPUSH")
    }

    @Test("the form of a reply, which errors show, is short and contains no data")
    func form() {
        let secret = String(repeating: "secret", count: 1000)
        let bytes = RESPValue.bytes(Array(secret.utf8))
        for value in [.status(secret), .error(secret), .integer(4711), bytes, .array([bytes, .array([bytes])])] {
            #expect(!value.form.contains("secret") && !value.form.contains("4711") && value.form.count < 40)
        }
    }

    @Test("the description shows text, and the number of other bytes")
    func description() {
        let value = RESPValue.array([.status("OK"), .error("ERR"), .integer(1), .bytes([97]), .bytes([255, 0]), .null])
        #expect("\(value)" == "[OK, (error) ERR, 1, a, (2 bytes), (nil)]")
    }
}
