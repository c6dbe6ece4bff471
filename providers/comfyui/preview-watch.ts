import { setTimeout as pause } from "node:timers/promises";
import { isRecord } from "../upstream/failure.ts";

/** A picture of work that goes on. */
interface Preview {
  /** Of which prompt; undefined where nothing says. */
  readonly promptId: string | undefined;
  readonly bytes: Uint8Array;
}

const [previewImage, previewWithMetadata] = [1, 4];
const headerBytes = 8;

/**
 * Listens to a server's websocket on behalf of one prompt. It keeps the newest preview and no other.
 *
 * A plain preview does not say whose it is, and the server sends everybody those of prompts without a client. So it counts
 * as that of the prompt which the messages before it were about; one prompt runs at a time.
 */
export class PreviewWatch {
  #runningId: string | undefined;
  #newest: Preview | undefined;
  #last: Uint8Array = new Uint8Array(0);
  #endedId: string | undefined;
  #wake = () => {};

  /** Takes a message of the server. */
  hear(message: string | Uint8Array): void {
    if (typeof message === "string") this.#hearText(message);
    else this.#hearBytes(message);
  }

  /** The newest preview of a prompt, each picture once. */
  take(promptId: string): Uint8Array | undefined {
    const newest = this.#newest;
    this.#newest = undefined;
    if (newest?.promptId !== promptId || Buffer.compare(newest.bytes, this.#last) === 0) return undefined;
    this.#last = newest.bytes;
    return newest.bytes;
  }

  /** Resolves with the next preview or end of a prompt, or after a while; never rejects. True: it has ended. */
  async next(promptId: string, pauseMs: number, signal: AbortSignal): Promise<boolean> {
    const over = new AbortController();
    const { promise: woken, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    if (this.#newest !== undefined || this.#endedId === promptId) resolve();
    const ends = AbortSignal.any([signal, over.signal]);
    await Promise.race([woken, pause(pauseMs, undefined, { signal: ends }).catch(() => undefined)]);
    over.abort();
    const hasEnded = this.#endedId === promptId;
    if (hasEnded) this.#endedId = undefined;
    return hasEnded;
  }

  #hearText(text: string): void {
    const { type, data } = parse(text) ?? {};
    if (!isRecord(data) || typeof data.prompt_id !== "string") return;
    this.#runningId = data.prompt_id;
    // Sent when the history has what came of the prompt.
    if (type !== "executing" || data.node !== null) return;
    this.#runningId = undefined;
    this.#endedId = data.prompt_id;
    this.#wake();
  }

  #hearBytes(message: Uint8Array): void {
    if (message.length <= headerBytes) return;
    const view = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
    const [type, second] = [view.readUInt32BE(0), view.readUInt32BE(4)];
    if (type === previewImage) {
      this.#newest = { promptId: this.#runningId, bytes: message.subarray(headerBytes) };
    } else if (type === previewWithMetadata && headerBytes + second < message.length) {
      const { prompt_id: id } = parse(view.toString("utf8", headerBytes, headerBytes + second)) ?? {};
      const promptId = typeof id === "string" ? id : undefined;
      this.#newest = { promptId, bytes: message.subarray(headerBytes + second) };
    } else return;
    this.#wake();
  }
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
