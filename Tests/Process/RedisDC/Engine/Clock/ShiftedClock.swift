// A wall clock that is wrong for one program only, and can be set while it runs.
import Foundation
import RedisDCTesting
import TestRandom
import TestSupport

/// A small library that is loaded before the C library and shifts the results of
/// `clock_gettime(CLOCK_REALTIME)`, `gettimeofday` and `time`. Monotonic clocks stay as they are,
/// as when a machine's clock is set.
struct ShiftedClock {
    /// The reason for which the tests are skipped on other systems.
    static let requirement = "needs Linux and a C compiler: a clock is shifted by a library that is loaded first"

    static var isAvailable: Bool {
        #if os(Linux)
            compiler != nil
        #else
            false
        #endif
    }

    private static var compiler: String? {
        ["/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"].first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    private let folder: URL
    private var library: String { folder.appendingPathComponent("clock.so").path }
    private var offset: URL { folder.appendingPathComponent("offset") }

    /// Builds the library, runs `body`, and removes the library.
    static func with<Result>(_ body: (ShiftedClock) async throws -> Result) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("clock-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let clock = ShiftedClock(folder: folder)
        let source = folder.appendingPathComponent("clock.c")
        try Data(code.utf8).write(to: source)
        try clock.set(.zero)
        let building = Process()
        building.executableURL = URL(fileURLWithPath: compiler ?? "/usr/bin/cc")
        building.arguments = ["-shared", "-fPIC", "-O1", "-o", clock.library, source.path, "-ldl"]
        try building.run()
        building.waitUntilExit()
        guard building.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
        return try await body(clock)
    }

    /// Shifts the clock of all programs that run with the library.
    func set(_ shift: Duration) throws {
        tally(.fault)
        var seconds = shift.components.seconds
        let data = Data(bytes: &seconds, count: 8)
        guard let file = try? FileHandle(forWritingTo: offset) else { return try data.write(to: offset) }
        // In place, because the programs have mapped the file.
        try file.write(contentsOf: data)
        try file.close()
    }

    /// The environment of a program that runs with this clock.
    var environment: [String: String] { ["LD_PRELOAD": library, "TEST_CLOCK_OFFSET": offset.path] }

    /// Returns the path of a program that starts a Redis server with this clock.
    func server() throws -> String {
        guard let server = ServerProgram.find() else { throw CocoaError(.fileNoSuchFile) }
        let script = folder.appendingPathComponent("redis-server")
        let text = """
            #!/bin/sh
            LD_PRELOAD='\(library)' TEST_CLOCK_OFFSET='\(offset.path)' exec '\(server)' "$@"

            """
        try Data(text.utf8).write(to: script)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: script.path)
        return script.path
    }

    private static let code = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <stdint.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/time.h>
        #include <time.h>

        static int64_t shift(void) {
            static volatile int64_t *offset;
            if (!offset) {
                const char *path = getenv("TEST_CLOCK_OFFSET");
                int file = path ? open(path, O_RDONLY) : -1;
                void *map = file < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
                if (map == MAP_FAILED) abort();
                offset = map;
            }
            return *offset;
        }

        int clock_gettime(clockid_t clock, struct timespec *time) {
            static int (*real)(clockid_t, struct timespec *);
            if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
            int result = real(clock, time);
            if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += shift();
            return result;
        }

        int gettimeofday(struct timeval *restrict time, void *restrict zone) {
            struct timespec now;
            (void)zone;
            clock_gettime(CLOCK_REALTIME, &now);
            time->tv_sec = now.tv_sec;
            time->tv_usec = now.tv_nsec / 1000;
            return 0;
        }

        time_t time(time_t *result) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """
}
