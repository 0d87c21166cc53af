import CommandLineTool
import Testing

/// The text that stands for arguments that are not UTF-8.
@Suite("The text of arguments")
struct ArgumentTextTests {
    @Test("text and bytes become each other again, and different arguments stay different")
    func reversible() {
        // ASCII, parts of longer characters, and the characters that stand for bytes.
        let parts: [[UInt8]] = [
            [0x61], [0xE9], [0xC3, 0xA9], [0xC3], [0xFF], [0xF0, 0x9F, 0x8C, 0x8D], [0xF0, 0x9F], [0x80],
            Array("\u{10FEE9}".utf8), Array("\u{10FE00}".utf8), [0xED, 0xA0, 0x80],
        ]
        var texts: [String: [UInt8]] = [:]
        // All sequences of up to four parts.
        var sequences: [[UInt8]] = [[]]
        for _ in 0..<4 { sequences = Array(Set(sequences + sequences.flatMap { start in parts.map { start + $0 } })) }
        #expect(sequences.count > 5000)
        for bytes in sequences {
            let text = ArgumentText.text(of: bytes)
            #expect(ArgumentText.bytes(of: text) == bytes)
            #expect(texts.updateValue(bytes, forKey: text) ?? bytes == bytes)
        }
        #expect(ArgumentText.text(of: Array("café".utf8)) == "café")
    }
}
