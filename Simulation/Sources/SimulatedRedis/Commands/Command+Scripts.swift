// Commands that run scripts and keep them.

extension Command {
    static let scriptCommands = [
        Command("EVAL", -3, .counted, .notInScripts) { server, words throws(RedisError) in
            let sha = SHA1.hexadecimal(words[1])
            let count = try Self.countOfKeys(words)
            server.scripts[sha] = words[1]
            return server.evaluate(words[1], sha: sha, keys: words[3..<(3 + count)], arguments: words[(3 + count)...])
        },
        Command("EVALSHA", -3, .counted, .notInScripts) { server, words throws(RedisError) in
            let count = try Self.countOfKeys(words)
            guard let (sha, text) = server.script(named: words[1]) else { throw .noScript }
            return server.evaluate(text, sha: sha, keys: words[3..<(3 + count)], arguments: words[(3 + count)...])
        },
        Command("SCRIPT", -2, .none, .notInScripts) { server, words throws(RedisError) in
            if words[1].isWord("LOAD"), words.count == 3 {
                let sha = SHA1.hexadecimal(words[2])
                let compiled = Interpreter.with { interpreter in
                    Result { () throws(RedisError) in try interpreter.compile(words[2], sha: sha) }
                }
                _ = try compiled.get()
                server.scripts[sha] = words[2]
                return .bulk(sha)
            }
            if words[1].isWord("EXISTS"), words.count >= 3 {
                return .array(words.dropFirst(2).map { .flag(server.script(named: $0) != nil) })
            }
            if words[1].isWord("FLUSH"), words.count <= 3 {
                server.scripts = [:]
                return .ok
            }
            throw Self.unknownSubcommand(words)
        },
    ]

    private static func countOfKeys(_ words: [Bytes]) throws(RedisError) -> Int {
        let count = try words[2].requireInteger()
        if count > words.count - 3 { throw RedisError("ERR Number of keys can't be greater than number of args") }
        if count < 0 { throw RedisError("ERR Number of keys can't be negative") }
        return Int(count)
    }

    /// The error of a command whose second word is not one that it has.
    static func unknownSubcommand(_ words: [Bytes]) -> RedisError {
        RedisError("ERR unknown subcommand '" + words[1] + "'. Try " + words[0].uppercased + " HELP.")
    }
}

extension SimulatedRedis {
    /// Returns the SHA-1, in small letters, and the text of a script.
    fileprivate func script(named sha: Bytes) -> (sha: Bytes, text: Bytes)? {
        if let text = scripts[sha] { return (sha, text) }
        let small = Bytes(sha.text.lowercased())
        return scripts[small].map { (small, $0) }
    }
}
