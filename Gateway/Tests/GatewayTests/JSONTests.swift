import Testing

@testable import Gateway

@Suite("JSON")
struct JSONTests {
    private func parse(_ text: String) throws -> JSON { try JSONParser.parse(Array(text.utf8)) }

    @Test(
        "a text that was parsed and printed is the same, without white space",
        arguments: [
            "null", "[true,false]", "-0.1e+10", "12345678901234567890.12345678901234567890", "\"grüß 👋\"",
            #"{"a":{"b":[1,2,{"c":""}]},"b":[]}"#, #""\"\\\u0000\u001f""#,
        ])
    func roundTrip(text: String) throws {
        #expect(try parse(text).text == text)
        #expect(try parse(" \n\t\r" + text + " \n").text == text)
    }

    @Test("escapes are read as the characters that they stand for")
    func escapes() throws {
        #expect(try parse(#""\u0041\ud83d\udc4b\/\b\f\n\r\t\"\\""#) == .string("A👋/\u{8}\u{C}\n\r\t\"\\"))
    }

    @Test(
        "what RFC 8259 does not allow is refused",
        arguments: [
            "", "nul", "tru", "+1", "01", "1.", ".5", "1e", "--1", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":1,}", "{a:1}",
            "{\"a\":1,\"a\":2}", "\"", "\"\n\"", #""\x""#, #""\u12g4""#, #""\ud800""#, #""\udc00""#, #""\ud800\u0041""#,
            "1 2", "[", "{", "\u{FEFF}1", "NaN", "'a'",
        ])
    func refused(text: String) { #expect(throws: JSONParser.Fault.self) { try parse(text) } }

    @Test("names that differ in their bytes are different, also where Swift considers them equal")
    func names() throws {
        let text = "{\"\u{F6}\":1,\"o\u{308}\":2}"
        #expect(try parse(text).text.utf8.elementsEqual(text.utf8))
    }

    @Test("text that is not UTF-8 is refused")
    func invalidText() {
        for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82]] {
            #expect(throws: JSONParser.Fault.self) { try JSONParser.parse([0x22] + bytes + [0x22]) }
        }
    }

    @Test("64 levels of arrays and objects are read, and 65 are refused")
    func depth() throws {
        func nested(_ count: Int) -> String {
            String(repeating: "[", count: count) + String(repeating: "]", count: count)
        }
        #expect(try parse(nested(64)).array?.count == 1)
        #expect(throws: JSONParser.Fault.self) { try parse(nested(65)) }
        let objects = String(repeating: "{\"a\":", count: 64)
        #expect(try parse(objects + "1" + String(repeating: "}", count: 64))["a"] != nil)
        #expect(throws: JSONParser.Fault.self) { try parse(objects + "{}" + String(repeating: "}", count: 64)) }
        #expect(throws: JSONParser.Fault.self) { try parse(String(repeating: "[", count: 1_000_000)) }
    }
}
