import Hiredis

/// The scripts of leaderboards, which are made from the library in Lua/ and embedded in the binary at build time.
enum LeaderboardScripts {
    static let submit = RedisScript(embedded: PackageResources.board_submit_lua)
    static let read = RedisScript(embedded: PackageResources.board_read_lua)
    static let remove = RedisScript(embedded: PackageResources.board_remove_lua)
    static let answers = RedisScript(embedded: PackageResources.board_answers_lua)
    static let removeAgain = RedisScript(embedded: PackageResources.board_remove_again_lua)
}
