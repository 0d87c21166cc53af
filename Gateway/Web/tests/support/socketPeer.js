// The server's end of a WebSocket (RFC 6455): whole text frames, close and ping.
import { createHash } from "node:crypto";

const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export class SocketPeer {
    onText = () => {};
    onClose = () => {};
    #bytes = Buffer.alloc(0);

    constructor(request, socket) {
        this.socket = socket;
        const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + guid).digest("base64");
        socket.write([
            "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
            `Sec-WebSocket-Accept: ${accept}`, `Sec-WebSocket-Protocol: ${request.headers["sec-websocket-protocol"]}`,
            "", "",
        ].join("\r\n"));
        socket.on("data", (bytes) => this.#read(bytes));
        socket.on("close", () => this.onClose());
        socket.on("error", () => {});
    }

    #read(bytes) {
        this.#bytes = Buffer.concat([this.#bytes, bytes]);
        while (this.#bytes.length >= 6) {
            let length = this.#bytes[1] & 127;
            let start = 2;
            if (length === 126) {
                length = this.#bytes.readUInt16BE(2);
                start = 4;
            }
            if (this.#bytes.length < start + 4 + length) return;
            const mask = this.#bytes.subarray(start, start + 4);
            const masked = this.#bytes.subarray(start + 4, start + 4 + length);
            const data = masked.map((byte, index) => byte ^ mask[index % 4]);
            const opcode = this.#bytes[0] & 15;
            this.#bytes = this.#bytes.subarray(start + 4 + length);
            if (opcode === 1) this.onText(Buffer.from(data).toString());
            if (opcode === 8) {
                this.#write(8, data);
                this.socket.end();
            }
        }
    }

    #frame(opcode, data) {
        const head = Buffer.alloc(data.length < 126 ? 2 : data.length < 65536 ? 4 : 10);
        head[0] = 128 | opcode;
        head[1] = head.length === 2 ? data.length : head.length === 4 ? 126 : 127;
        if (head.length === 4) head.writeUInt16BE(data.length, 2);
        if (head.length === 10) head.writeBigUInt64BE(BigInt(data.length), 2);
        return Buffer.concat([head, data]);
    }

    #write(opcode, data) { if (this.socket.writable) this.socket.write(this.#frame(opcode, Buffer.from(data))); }

    send(text) { this.#write(1, text); }

    sendHalf(text) {
        const frame = this.#frame(1, Buffer.from(text));
        this.socket.write(frame.subarray(0, frame.length / 2));
    }

    close(code) {
        const data = Buffer.alloc(2);
        data.writeUInt16BE(code);
        this.#write(8, data);
        setImmediate(() => this.socket.end());
    }
}
