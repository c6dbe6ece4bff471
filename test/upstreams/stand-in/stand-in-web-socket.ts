/** The server's side of a websocket that only talks (RFC 6455), for stand-ins. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/** An accepted websocket. */
export interface StandInWebSocket {
  /** Sends a message: a string as text, bytes as they are. */
  send(message: string | Uint8Array): void;
  /** Breaks the connection, without a closing handshake. */
  cut(): void;
  /** Whether it has ended, from whichever side. */
  readonly isClosed: boolean;
}

const magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const opcodes = { text: 0x1, binary: 0x2, close: 0x8 };

/** Accepts an upgrade; messages of the client are not looked at, but that it closes is answered. */
export function acceptWebSocket({ headers }: IncomingMessage, socket: Duplex): StandInWebSocket {
  const accept = createHash("sha1").update(`${headers["sec-websocket-key"]}${magic}`).digest("base64");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  );
  socket.on("data", (piece: Buffer) => {
    if (((piece[0] ?? 0) & 0xf) === opcodes.close) socket.end(frame(opcodes.close, Buffer.alloc(0)));
  });
  return {
    send: (message) => {
      const isText = typeof message === "string";
      if (!socket.destroyed)
        socket.write(frame(isText ? opcodes.text : opcodes.binary, Buffer.from(message as Uint8Array)));
    },
    cut: () => void socket.destroy(),
    get isClosed() {
      return socket.destroyed || socket.readableEnded;
    },
  };
}

/** One whole, unmasked message. */
function frame(opcode: number, content: Buffer): Buffer {
  const { length } = content;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  head[1] = Math.min(length, head.length === 4 ? 126 : head.length === 10 ? 127 : length);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, content]);
}
