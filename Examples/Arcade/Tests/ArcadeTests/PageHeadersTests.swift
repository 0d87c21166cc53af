import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Testing

@testable import arcade

@Suite("Headers of pages")
struct PageHeadersTests {
    @Test("a page runs only scripts of the arcade, and is shown in no frame")
    func policy() async throws {
        let router = Router(context: LocalContext.self)
        router.add(middleware: PageHeaders())
        router.get("/") { _, _ in "page" }
        let head = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/")
        let response = try await router.buildResponder().respond(
            to: Request(head: head, body: RequestBody(buffer: ByteBuffer())), context: LocalContext())
        let policy = response.headers[HTTPField.Name("Content-Security-Policy")!] ?? ""
        let directives = Set(policy.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) })
        #expect(directives.isSuperset(of: ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"]))
        #expect(response.headers[HTTPField.Name("X-Content-Type-Options")!] == "nosniff")
    }

    @Test("no page has scripts or styles of its own, which the policy would refuse")
    func inline() throws {
        let web = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../web")
        let files = FileManager.default.enumerator(at: web, includingPropertiesForKeys: nil)
        let pages = (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "html" }
        #expect(pages.count >= 7)
        for page in pages {
            let text = try String(contentsOf: page, encoding: .utf8)
            for found in text.matches(of: /<script[^>]*>/) { #expect(found.output.contains("src="), "\(page.path)") }
            #expect(!text.contains(/<style|\sstyle=|\son[a-z]+=/), "\(page.path)")
        }
    }
}
