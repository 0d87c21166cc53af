import Hiredis

/// The scripts of presence buckets, which are made from the library in Lua/ and embedded in the binary at build time.
enum PresenceScripts {
    static let join = RedisScript(embedded: PackageResources.presence_join_lua)
    static let apply = RedisScript(embedded: PackageResources.presence_apply_lua)
    static let `repeat` = RedisScript(embedded: PackageResources.presence_repeat_lua)
    static let sweep = RedisScript(
        String(decoding: PackageResources.presence_sweep_lua, as: UTF8.self), isHeartbeat: true)
    static let read = RedisScript(embedded: PackageResources.presence_read_lua)
    static let page = RedisScript(embedded: PackageResources.presence_page_lua)
}
