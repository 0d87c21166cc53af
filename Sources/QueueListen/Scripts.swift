import Hiredis

/// The texts of Scripts/, embedded in the binary at build time. scripts/lua makes them from the library in Lua/, which
/// describes what each does.
enum Scripts {
    static let send = RedisScript(embedded: PackageResources.send_lua)
    static let repair = RedisScript(embedded: PackageResources.repair_lua)
    static let time = RedisScript(embedded: PackageResources.time_lua)
    static let listen = RedisScript(embedded: PackageResources.listen_lua)
    static let peek = RedisScript(embedded: PackageResources.peek_lua)
    static let inspect = RedisScript(embedded: PackageResources.inspect_lua)
    static let delete = RedisScript(embedded: PackageResources.delete_lua)
    static let setLimits = RedisScript(embedded: PackageResources.set_limits_lua)
    static let acknowledged = RedisScript(embedded: PackageResources.acknowledged_lua)
    static let forget = RedisScript(embedded: PackageResources.forget_lua)
    static let check = RedisScript(embedded: PackageResources.check_lua)
    static let begin = RedisScript(embedded: PackageResources.begin_lua)
    static let finish = RedisScript(embedded: PackageResources.finish_lua)
    static let schedule = RedisScript(embedded: PackageResources.schedule_lua)
    static let takeDue = RedisScript(embedded: PackageResources.take_due_lua)
    static let work = RedisScript(embedded: PackageResources.work_lua)
    static let beat = RedisScript(embedded: PackageResources.beat_lua)
    static let listJobs = RedisScript(embedded: PackageResources.list_jobs_lua)
    static let retryJobs = RedisScript(embedded: PackageResources.retry_jobs_lua)
    static let cancelJobs = RedisScript(embedded: PackageResources.cancel_jobs_lua)
    static let pauseWork = RedisScript(embedded: PackageResources.pause_work_lua)
    static let advance = RedisScript(embedded: PackageResources.advance_lua)
    static let cancel = RedisScript(embedded: PackageResources.cancel_lua)
    static let takeOver = RedisScript(embedded: PackageResources.take_over_lua)
}
