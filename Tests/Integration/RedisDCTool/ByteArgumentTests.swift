import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTool
@testable import RedisDCToolTestSupport

/// Arguments that are not UTF-8. The tests write them as shells do: `printf` makes the bytes.
@Suite("Arguments of redisdc that are no text")
struct ByteArgumentTests {
    private func shell(_ script: String, _ tool: EngineTool) async throws -> Child.End {
        // `eventually` gives up, so that a program that fails each time ends the test.
        let prefix = """
            e=$(printf '\\351'); E=$(printf '\\350')
            eventually() { for _ in $(seq 600); do if "$@"; then return; fi; sleep 0.05; done; return 1; }
            publishes() { [ "$(redisdc publish news $e$E)" = 1 ]; }

            """
        return try await tool.shell(prefix + script).end()
    }

    @Test("are passed on to the program that lock runs, as its name, its arguments and its environment")
    func program() async throws {
        try await withEngineTool { tool in
            let end = try await shell(
                """
                echo content > caf$e.txt; printf '#!/bin/sh\\nprintf "%%s" "$1$VALUE" | od -An -tx1' > run$e; chmod +x run$e
                redisdc lock x -- cat caf$e.txt; VALUE=$E redisdc lock x -- ./run$e $e$E
                """, tool)
            #expect(end.error == "")
            #expect(end.output.split(separator: "\n") == ["content", " e9 e8 e8"])
        }
    }

    @Test("are bodies of messages, unchanged from send to listen, from publish to subscribe, and as presence")
    func bodies() async throws {
        try await withEngineTool { tool in
            let mail = try await shell(
                """
                redisdc mail send --to alice $e$E > sent; redisdc mail listen alice --timeout 0 | head -c 3 | od -An -tx1
                redisdc mail peek alice --json
                """, tool)
            #expect(mail.output.contains("e9 e8 0a"), "\(mail)")
            #expect(mail.output.contains("\"body64\":\"6eg=\""))
            let published = try await shell(
                """
                redisdc subscribe news > received & eventually publishes && eventually [ -s received ]; kill $!; head -c 3 received | od -An -tx1
                """, tool)
            #expect(published.output.contains("e9 e8 0a"), "\(published)")
            let present = try await shell(
                """
                redisdc presence put lobby key $e$E --user me > put & eventually [ -s put ]
                redisdc presence snapshot lobby | od -An -tx1; redisdc presence snapshot lobby --json; kill $!
                """, tool)
            #expect(present.output.contains("e9 e8 0a"), "\(present)")
            #expect(present.output.contains("\"value64\":\"6eg=\""))
        }
    }

    @Test("are refused as names, instead of two names becoming one")
    func names() async throws {
        try await withEngineTool { tool in
            for command in [
                "lock $e -- true", "sem create $e --permits 1", "mail send --to $e hello", "mail listen $e --timeout 0",
                "mail send --to alice --header a=$e hello", "board submit $e alice 1", "publish $e hello",
                "inspect x --namespace $e", "classic value $e",
            ] {
                let end = try await shell("redisdc \(command)", tool)
                #expect(end.status == 65 && end.error.contains("is not UTF-8 text"), "\(command): \(end)")
            }
            try await withRedisClient(url: tool.server.unixURL) { redis in
                let keys = try await redis.send("KEYS", "*").array
                #expect(keys == [])
            }
        }
    }
}
