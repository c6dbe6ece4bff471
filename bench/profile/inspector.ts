import type { Child } from "../../test/support/processes/child.ts";

/** What lets a process be looked into: its environment needs this, and says where on its stderr. */
export const inspectable: Readonly<Record<string, string>> = {
  NODE_OPTIONS: "--inspect=127.0.0.1:0",
};

/** Where in its code a process was. */
export interface CallFrame {
  readonly functionName: string;
  /** `file://…`, `node:…`, or empty for what is no script. */
  readonly url: string;
  /** Both count from 0. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** A call and how often, or how much, it cost by itself. */
export interface Cost {
  readonly frame: CallFrame;
  /** Milliseconds, or bytes. */
  readonly self: number;
}

interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface HeapNode {
  readonly callFrame: CallFrame;
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

/** Bytes. */
interface HeapUsage {
  readonly usedSize: number;
  readonly backingStorageSize: number;
}

const samplingIntervalUs = 500;
const heapSamplingBytes = 16_384;

/** A session with the inspector of a process that was started `inspectable`. */
export class Inspector {
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, PromiseWithResolvers<object>>();
  #sent = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#hear(String(data)));
    socket.addEventListener("close", () => {
      for (const { reject } of this.#answers.values()) reject(new Error("the inspector has closed"));
    });
  }

  /** Connects to a process's inspector. */
  static async connect(child: Child): Promise<Inspector> {
    const line = await child.line((text) => text.includes("Debugger listening on ws://"));
    const socket = new WebSocket(line.slice(line.indexOf("ws://")).trim());
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", () => reject(new Error("no inspector answers")), { once: true });
    });
    return new Inspector(socket);
  }

  /** Begins to sample where its main thread is. */
  async startCpuProfile(): Promise<void> {
    await this.#send("Profiler.enable");
    await this.#send("Profiler.setSamplingInterval", { interval: samplingIntervalUs });
    await this.#send("Profiler.start");
  }

  /** What each function has cost by itself since, milliseconds. */
  async stopCpuProfile(): Promise<readonly Cost[]> {
    const { profile } = (await this.#send("Profiler.stop")) as { profile: CpuProfile };
    return costsOfProfile(profile);
  }

  /** Begins to sample what is allocated. */
  async startHeapProfile(): Promise<void> {
    await this.#send("HeapProfiler.enable");
    await this.#send("HeapProfiler.startSampling", {
      samplingInterval: heapSamplingBytes,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
  }

  /** What each function has allocated by itself since, collected or not, bytes. */
  async stopHeapProfile(): Promise<readonly Cost[]> {
    const { profile } = (await this.#send("HeapProfiler.stopSampling")) as { profile: { head: HeapNode } };
    return costsOfHeap(profile.head);
  }

  /** What heap and buffers take once garbage has been collected, MiB. */
  async liveHeapMib(): Promise<number> {
    await this.#send("HeapProfiler.collectGarbage");
    return this.heapMib();
  }

  /** What heap and buffers take, garbage included, MiB. */
  async heapMib(): Promise<number> {
    const { usedSize, backingStorageSize } = (await this.#send("Runtime.getHeapUsage")) as HeapUsage;
    return (usedSize + backingStorageSize) / 1024 ** 2;
  }

  close(): void {
    this.#socket.close();
  }

  #send(method: string, params: object = {}): Promise<object> {
    this.#sent += 1;
    const answer = Promise.withResolvers<object>();
    this.#answers.set(this.#sent, answer);
    this.#socket.send(JSON.stringify({ id: this.#sent, method, params }));
    return answer.promise;
  }

  #hear(text: string): void {
    const { id, result, error } = JSON.parse(text) as {
      id?: number;
      result?: object;
      error?: { message: string };
    };
    if (id === undefined) return;
    const answer = this.#answers.get(id);
    this.#answers.delete(id);
    if (error === undefined) answer?.resolve(result ?? {});
    else answer?.reject(new Error(error.message));
  }
}

/** The self time of each node of a profile: a sample lasts until the next one. */
export function costsOfProfile({ nodes, samples, timeDeltas }: CpuProfile): readonly Cost[] {
  const selfMs = new Map<number, number>();
  samples.forEach((id, index) => {
    selfMs.set(id, (selfMs.get(id) ?? 0) + (timeDeltas[index + 1] ?? 0) / 1000);
  });
  return nodes.map(({ id, callFrame }) => ({ frame: callFrame, self: selfMs.get(id) ?? 0 }));
}

function costsOfHeap(node: HeapNode): readonly Cost[] {
  return [{ frame: node.callFrame, self: node.selfSize }, ...node.children.flatMap(costsOfHeap)];
}
