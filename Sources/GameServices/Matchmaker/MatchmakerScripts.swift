import Hiredis

/// The scripts of matchmakers, which are made from the library in Lua/ and embedded in the binary at build time.
enum MatchmakerScripts {
    static let enqueue = RedisScript(embedded: PackageResources.match_enqueue_lua)
    static let tick = RedisScript(embedded: PackageResources.match_tick_lua)
    static let end = RedisScript(embedded: PackageResources.match_end_lua)
    static let told = RedisScript(embedded: PackageResources.match_told_lua)
    static let known = RedisScript(embedded: PackageResources.match_known_lua)
    static let restore = RedisScript(embedded: PackageResources.match_restore_lua)
    static let inspect = RedisScript(embedded: PackageResources.match_inspect_lua)
}
