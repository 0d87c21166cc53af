import Hiredis

/// The scripts of presence buckets, from the Lua files of Scripts/.
enum PresenceScripts {
    static let join = script(PackageResources.presence_join_lua)
    static let apply = script(
        PackageResources.presence_edit_lua, PackageResources.presence_apply_lua, PackageResources.presence_end_lua,
        PackageResources.presence_apply_end_lua)
    static let sweep = script(
        PackageResources.presence_edit_lua, PackageResources.presence_sweep_lua, PackageResources.presence_end_lua,
        PackageResources.presence_sweep_end_lua, isHeartbeat: true)
    static let read = script(PackageResources.presence_read_lua)
    static let page = script(PackageResources.presence_page_lua)

    /// Joins files into one script, with presence_head.lua first: Redis scripts cannot include one
    /// another.
    private static func script(_ parts: [UInt8]..., isHeartbeat: Bool = false) -> RedisScript {
        let source = String(decoding: Array(([PackageResources.presence_head_lua] + parts).joined()), as: UTF8.self)
        return RedisScript(source, isHeartbeat: isHeartbeat)
    }
}
