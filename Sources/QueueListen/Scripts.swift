import Hiredis

/// The Lua files of Scripts/, embedded in the binary at build time.
enum Scripts {
    static let send = script(
        PackageResources.mail_send_check_lua, PackageResources.mail_send_room_lua,
        PackageResources.mail_send_store_lua, PackageResources.mail_send_collapse_lua,
        PackageResources.mail_send_end_lua)
    static let repair = script(
        PackageResources.mail_open_lua, PackageResources.mail_repair_lua, PackageResources.mail_rewind_lua,
        PackageResources.mail_renew_lua)
    static let time = RedisScript(embedded: PackageResources.mail_time_lua)
    static let listen = script(
        PackageResources.mail_open_lua, PackageResources.mail_rewind_lua, PackageResources.mail_listen_lua,
        PackageResources.mail_page_lua, PackageResources.mail_listen_end_lua)
    static let peek = script(
        PackageResources.mail_open_lua, PackageResources.mail_peek_lua, PackageResources.mail_page_lua,
        PackageResources.mail_reply_lua)
    static let inspect = script(PackageResources.mail_open_lua, PackageResources.mail_inspect_lua)
    static let delete = script(PackageResources.mail_open_lua, PackageResources.mail_delete_lua)
    static let setLimits = script(
        PackageResources.mail_open_lua, PackageResources.mail_set_limits_lua, PackageResources.mail_rewind_lua,
        PackageResources.mail_renew_lua)
    static let forget = script(PackageResources.mail_open_lua, PackageResources.mail_forget_lua)
    static let check = script(PackageResources.mail_check_lua)
    static let begin = RedisScript(embedded: PackageResources.mail_begin_lua)
    static let finish = RedisScript(embedded: PackageResources.mail_finish_lua)
    static let takeOver = RedisScript(embedded: PackageResources.mail_take_over_lua)

    /// Joins files into one script, with mail_head.lua first: Redis scripts cannot include one
    /// another.
    private static func script(_ parts: [UInt8]...) -> RedisScript {
        RedisScript(embedded: Array(([PackageResources.mail_head_lua] + parts).joined()))
    }
}
