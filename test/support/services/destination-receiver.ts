import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import type { PlainBody } from "./destination-type.ts";

/** A request that a receiver got. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: PlainBody;
}

/** What a receiver does with a request: a status, or `hang` for ever, or `cut` the connection. */
export type ReceiverAnswer =
  | number
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | "hang"
  | "cut";

/** A receiver of plain destinations that listens on loopback. */
export interface TestReceiver {
  readonly port: number;
  /** Everything that came, in order. */
  readonly requests: readonly ReceivedRequest[];
  /** Decides about answers from now on; taken with 200 unless set. */
  answer: (request: ReceivedRequest) => ReceiverAnswer | Promise<ReceiverAnswer>;
  /** Where a destination of this name is to be sent. */
  url(name?: string): string;
  /** `<event id>/<revision>` of each event that was taken under a name, in order, repetitions included. */
  taken(name?: string): readonly string[];
  /** Bodies of what was taken under a name. */
  batches(name?: string): readonly PlainBody[];
  close(): Promise<void>;
}

/** Starts a receiver. */
export async function startTestReceiver(): Promise<TestReceiver> {
  const requests: ReceivedRequest[] = [];
  const bodies = new Map<string, PlainBody[]>();
  const receiver = {
    requests,
    answer: (_request: ReceivedRequest): ReceiverAnswer | Promise<ReceiverAnswer> => 200,
  };
  const handle = async (message: IncomingMessage, response: ServerResponse) => {
    const { method = "", url: path = "", headers } = message;
    const request = { method, path, headers, body: (await json(message)) as PlainBody };
    requests.push(request);
    const answer = await receiver.answer(request);
    if (answer === "hang") return;
    if (answer === "cut") {
      message.socket.destroy();
      return;
    }
    const {
      status,
      headers: sent = {},
      body = "",
    } = typeof answer === "number" ? { status: answer } : answer;
    if (status < 300) bodies.set(path, [...(bodies.get(path) ?? []), request.body]);
    response.writeHead(status, sent).end(body);
  };
  const server = createServer((message, response) => {
    handle(message, response).catch(() => message.socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const batches = (name = "") => (bodies.get(`/${name}`) ?? []).filter(({ events }) => events !== undefined);
  return Object.assign(receiver, {
    port,
    url: (name = "") => `http://127.0.0.1:${port}/${name}`,
    batches,
    taken: (name = "") =>
      batches(name)
        .flatMap(({ events }) => events)
        .map(({ eventId, revision = 0 }) => `${eventId}/${revision}`),
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  });
}
