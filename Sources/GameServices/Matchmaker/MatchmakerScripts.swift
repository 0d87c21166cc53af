import Hiredis

/// The Lua files of matchmakers in Scripts/, embedded in the binary at build time.
enum MatchmakerScripts {
    static let enqueue = script(PackageResources.match_search_lua, PackageResources.match_enqueue_lua)
    static let tick = script(PackageResources.match_search_lua, PackageResources.match_tick_lua)
    static let end = script(PackageResources.match_end_lua)
    static let told = script(PackageResources.match_told_lua)
    static let inspect = script(PackageResources.match_inspect_lua)

    /// Joins files into one script, with match_head.lua first: Redis scripts cannot include one
    /// another.
    private static func script(_ parts: [UInt8]...) -> RedisScript {
        RedisScript(embedded: Array(([PackageResources.match_head_lua] + parts).joined()))
    }
}
