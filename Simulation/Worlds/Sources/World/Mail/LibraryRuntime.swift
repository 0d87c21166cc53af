// What the library gets from Swift's runtime, and gets from a world instead: random numbers, and threads.
#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The part of Swift's runtime that a world replaces on its thread, so that a run repeats.
///
/// - The library draws tags, epochs and ids from the system's random numbers, which decide the order in which the server
///   visits processes. `swift_stdlib_random` below takes the place of the function of the standard library.
/// - A task without an executor of its own, as the library's timers are, runs on a thread of a pool. The runtime has a
///   hook through which all such tasks pass.
final class LibraryRuntime {
    var random: Random
    private let executor: WorldExecutor

    /// - Parameter seed: the seed of the world.
    init(seed: UInt64, _ executor: WorldExecutor) {
        random = Random(seed: seed &* 0x9E37_79B9 &+ 1)
        self.executor = executor
        _ = Self.hook
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    private static var current: LibraryRuntime? {
        pthread_getspecific(key).map { Unmanaged<LibraryRuntime>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Runs a body, on whose thread this takes the place of the runtime.
    func use(_ body: () -> Void) {
        let earlier = pthread_getspecific(Self.key)
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        body()
        pthread_setspecific(Self.key, earlier)
    }

    fileprivate static func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        guard let current else {
            getentropy(bytes.baseAddress, bytes.count)
            return
        }
        for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: current.random.next() >> 32) }
    }

    // MARK: Tasks without an executor

    private typealias Enqueue = @convention(thin) (UnownedJob) -> Void
    private typealias Hook = @convention(thin) (UnownedJob, Enqueue) -> Void

    /// Sets the hook of the runtime, once for the process.
    private static let hook: Void = {
        guard let symbol = dlsym(dlopen(nil, RTLD_LAZY), "swift_task_enqueueGlobal_hook") else {
            fatalError("this runtime of Swift has no hook for tasks")
        }
        symbol.assumingMemoryBound(to: Hook?.self).pointee = { job, enqueue in
            if let current { current.executor.add(job) } else { enqueue(job) }
        }
    }()
}

/// Replaces the function of the standard library.
@_cdecl("swift_stdlib_random")
public func systemRandom(_ bytes: UnsafeMutableRawPointer, _ count: Int) {
    LibraryRuntime.fill(UnsafeMutableRawBufferPointer(start: bytes, count: count))
}
