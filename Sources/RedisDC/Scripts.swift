// The Lua files of Scripts/, embedded in the binary when it is built.
import Hiredis

enum Scripts {
    static let classicCreate = RedisScript(embedded: PackageResources.classic_create_lua)
    static let classicDestroy = RedisScript(embedded: PackageResources.classic_destroy_lua)
    static let classicPassOn = RedisScript(embedded: PackageResources.classic_pass_on_lua)
    static let classicGiveBack = RedisScript(embedded: PackageResources.classic_give_back_lua)

    static let rateLimit = RedisScript(embedded: PackageResources.rate_limit_lua)

    static let engineJoin = RedisScript(embedded: PackageResources.engine_join_lua)
    static let engineLeave = RedisScript(embedded: PackageResources.engine_leave_lua)
    static let engineInspect = RedisScript(embedded: PackageResources.engine_inspect_lua)
    static let engineList = RedisScript(embedded: PackageResources.engine_list_lua)

    static let engineHeartbeat = engine(PackageResources.engine_heartbeat_lua)
    static let engineReconcile = engine(PackageResources.engine_reconcile_lua)
    static let engineRelease = engine(PackageResources.engine_release_lua)
    static let engineGive = engine(PackageResources.engine_give_lua)
    static let engineDestroy = engine(PackageResources.engine_destroy_lua)
    static let engineAcquire = engine(PackageResources.engine_resource_lua, PackageResources.engine_acquire_lua)
    static let engineSignal = engine(PackageResources.engine_resource_lua, PackageResources.engine_signal_lua)
    static let engineCreate = engine(PackageResources.engine_resource_lua, PackageResources.engine_create_lua)
    static let engineArrive = engine(PackageResources.engine_resource_lua, PackageResources.engine_arrive_lua)
    static let engineRegister = engine(PackageResources.engine_resource_lua, PackageResources.engine_register_lua)
    static let engineCount = engine(PackageResources.engine_resource_lua, PackageResources.engine_count_lua)
    static let engineGate = engine(PackageResources.engine_resource_lua, PackageResources.engine_gate_lua)
    static let engineReduce = engine(PackageResources.engine_reduce_lua)
    static let engineRead = engine(PackageResources.engine_read_lua)
    static let enginePass = engine(PackageResources.engine_resource_lua, PackageResources.engine_pass_lua)
    static let engineResize = engine(PackageResources.engine_resource_lua, PackageResources.engine_resize_lua)

    /// Redis's scripts cannot include one another: an operation stands between the head and the
    /// tail that all share.
    private static func engine(_ parts: [UInt8]...) -> RedisScript {
        let all = [PackageResources.engine_head_lua] + parts + [PackageResources.engine_tail_lua]
        return RedisScript(embedded: Array(all.joined()))
    }
}
