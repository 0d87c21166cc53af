// The Lua files of Scripts/, embedded in the binary when it is built.
import Hiredis

enum Scripts {
    static let classicCreate = RedisScript(embedded: PackageResources.classic_create_lua)
    static let classicDestroy = RedisScript(embedded: PackageResources.classic_destroy_lua)
    static let classicPassOn = RedisScript(embedded: PackageResources.classic_pass_on_lua)
    static let classicGiveBack = RedisScript(embedded: PackageResources.classic_give_back_lua)
}
