import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import {
  type GatewayServer,
  type GatewayServerOptions,
  startGatewayServer,
  testKeys,
} from "./gateway-server.ts";

/** Makes a handler that answers as `make` says, unless the test wants it to fail. */
export type Answer<R> = <A>(make: (request: R) => A) => (request: R) => A;

/** A gateway for all tests of a file, in front of a service that they play; between them it forgets. */
export class PlayedGateway<R = unknown> {
  /** The requests that the service got. */
  readonly asked: R[] = [];
  /** What the service throws in place of every answer. */
  failure: Error | undefined;
  #server: GatewayServer | undefined;

  constructor(play: (answer: Answer<R>) => GatewayServerOptions) {
    const answer: Answer<R> = (make) => (request) => {
      this.asked.push(request);
      if (this.failure !== undefined) throw this.failure;
      return make(request);
    };
    beforeAll(async () => {
      this.#server = await startGatewayServer(play(answer));
    });
    beforeEach(() => {
      this.asked.length = 0;
      this.failure = undefined;
    });
    afterAll(() => this.#server?.[Symbol.asyncDispose]());
  }

  get server(): GatewayServer {
    if (this.#server === undefined) throw new Error("the gateway is not started yet");
    return this.#server;
  }

  /** Calls an operation, with a management key unless another is given; a string goes out as it is. */
  readonly call = (
    method: string,
    path: string,
    body?: unknown,
    key: string = testKeys.management,
  ): Promise<Response> =>
    fetch(`${this.server.baseUrl}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
}

/** The paths that an answer of 400 finds fault with. */
export async function faultsOf(response: Response): Promise<string[]> {
  expect(response.status).toBe(400);
  const body = (await response.json()) as { error: { metadata: { issues: { path: string }[] } } };
  return body.error.metadata.issues.map(({ path }) => path);
}
