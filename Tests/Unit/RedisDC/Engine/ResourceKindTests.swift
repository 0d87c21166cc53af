import Foundation
import TestKinds
import Testing

@testable import RedisDC

@Suite("Kinds of resources")
struct ResourceKindTests {
    @Test("are the ones that the scripts know, with the same policies")
    func sameAsScripts() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../../Sources/RedisDC/Lua").standardizedFileURL
        var found: [String] = []
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            let text = try String(contentsOf: file, encoding: .utf8)
            if let table = text.firstMatch(of: #/-- Kinds of resources, (?s:.*?)\n--\n/#) {
                found += table.0.matches(of: #/(?:--   |; )([a-z]{2}) /#).map { String($0.1) }
            }
            found += text.matches(of: #/\nlocal [A-Z_]+ = '([a-z]{2})'/#).map { String($0.1) }
        }
        let expected = ResourceKind.allCases.flatMap { kind in
            kind.traits.policies.keys.map { "\(kind.traits.letter)\($0)" }
        }
        #expect(found.sorted() == expected.sorted())
    }

    @Test("are all used by the mixes of primitives")
    func mixed() {
        let mixed = Set(KindUse.all.flatMap(\.kinds))
        #expect(mixed == Set(ResourceKind.allCases).subtracting([.broken, .beingDestroyed]))
    }

    @Test(
        "describe a resource in words",
        arguments: [
            ("sf", 3, "a semaphore with 3 permits, first come first served"), ("mf", 1, "a mutex"),
            ("rw", 1_000_000, "a read-write lock that prefers writers"), ("lf", 2, "a latch for 2, broken by a death"),
            ("bo", 4, "a barrier for 4, where a party that leaves is removed"), ("eo", 2, "an exchanger for 2"),
            ("kf", 8, "a bounded buffer for 8"), ("if", 0, "a bounded buffer's items"), ("zf", 0, "broken"),
        ])
    func described(letters: String, permits: Int, words: String) {
        let kind = ResourceKind(letters: letters)
        #expect(kind.described(permits: permits, policy: letters.unicodeScalars.last) == words)
    }
}
