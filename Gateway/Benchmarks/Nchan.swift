import Foundation
import NIOCore
import NIOPosix
import RedisDCTesting

/// A comparable server under the same client: nginx with nchan, which keeps the messages of a channel in Redis and resumes
/// an event stream after the last identifier. It signs nothing, knows no devices, and deletes messages by age and number,
/// not after an acknowledgement.
enum Nchan {
    /// As Debian's packages nginx-light and libnginx-mod-nchan install them.
    private static let nginx = "/usr/sbin/nginx"
    private static let module = "/usr/lib/nginx/modules/ngx_nchan_module.so"

    static var isInstalled: Bool {
        [nginx, module].allSatisfy { FileManager.default.fileExists(atPath: $0) }
    }

    static func measure(_ redis: LocalRedis, streams: Int) async throws -> [Figure] {
        let bytes = try await withServer(redis) { server in
            try await Idle.bytes(server, streams) { connection, number in
                try await connection.write(subscription("idle\(number)"))
                _ = try await connection.read(to: ": hi\n\n")
            }
        }
        let times = try await withServer(redis) { server in
            try await Connection.with(port: server.port) { sender in
                try await Connection.with(port: server.port) { connection in
                    try await connection.write(subscription("carol"))
                    _ = try await connection.read(to: ": hi\n\n")
                    return try await Latency.times(sender: &sender, receiver: &connection) { _ in
                        let body = #"{"text":"hello"}"#
                        return "POST /send/carol HTTP/1.1\r\nHost: nchan\r\nContent-Type: application/json\r\n"
                            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
                    }
                }
            }
        }
        return [
            Figure(name: "nchan: \(streams) idle event streams, each", value: bytes / 1024, unit: "KiB"),
            Figure(name: "nchan: POST to receipt by an event stream, p50", value: times.percentile(0.5), unit: "µs"),
            Figure(name: "nchan: POST to receipt by an event stream, p99", value: times.percentile(0.99), unit: "µs"),
        ]
    }

    private static func subscription(_ channel: String) -> String {
        "GET /events/\(channel) HTTP/1.1\r\nHost: nchan\r\nAccept: text/event-stream\r\n\r\n"
    }

    /// Starts nginx with one worker process.
    private static func withServer<Result>(
        _ redis: LocalRedis, _ body: (ServerProcess) async throws -> Result
    ) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "nchan-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let port = try await freePort()
        let (path, pid) = (folder.path, folder.appending(path: "pid"))
        try """
        load_module \(module);
        daemon off;
        worker_processes 1;
        pid \(path)/pid;
        error_log \(path)/errors;
        events { worker_connections 15000; }
        http {
            access_log off;
            client_body_temp_path \(path)/body;
            proxy_temp_path \(path)/proxy;
            fastcgi_temp_path \(path)/fastcgi;
            uwsgi_temp_path \(path)/uwsgi;
            scgi_temp_path \(path)/scgi;
            nchan_shared_memory_size 512M;
            keepalive_requests 1000000;
            upstream redis { nchan_redis_server \(redis.url); }
            server {
                listen 127.0.0.1:\(port) backlog=1024;
                location ~ ^/events/(.+)$ {
                    nchan_subscriber eventsource;
                    nchan_channel_id $1;
                    nchan_redis_pass redis;
                }
                location ~ ^/send/(.+)$ {
                    nchan_publisher;
                    nchan_channel_id $1;
                    nchan_redis_pass redis;
                }
            }
        }
        """.write(to: folder.appending(path: "nginx.conf"), atomically: true, encoding: .utf8)
        // nginx does not read its input, so the shell ends it when this process ends.
        let script = """
            "$0" -p "$1" -c nginx.conf -e errors & nginx=$!
            echo "port $2"
            cat >/dev/null
            kill -KILL $(cat "/proc/$nginx/task/$nginx/children") $nginx
            """
        let server = try ServerProcess("/bin/sh", ["-c", script, nginx, path, "\(port)"]) {
            // The worker, which has the connections.
            let master = try String(contentsOf: pid, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
            let children = try String(contentsOfFile: "/proc/\(master)/task/\(master)/children", encoding: .utf8)
            return children.split(separator: " ").first.flatMap { Int32($0) }
        }
        defer { server.end() }
        while (try? await Connection.with(port: port, { _ in true })) == nil {
            guard server.isRunning else { throw BenchmarkError("nginx has ended") }
            try await Task.sleep(for: .milliseconds(20))
        }
        return try await body(server)
    }

    private static func freePort() async throws -> Int {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = channel.localAddress?.port
        try await channel.close()
        guard let port else { throw BenchmarkError("there is no free port") }
        return port
    }
}
