import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type Balancer, type BalancerOptions, startBalancer } from "./tcp-balancer.ts";

/** A server that says its name, and whether it is ready. */
async function startReplica(name: string, port = 0) {
  const state = { isReady: true };
  const gate = Promise.withResolvers<void>();
  const server: Server = createServer(async (request, response) => {
    if (request.url === "/readyz") response.statusCode = state.isReady ? 200 : 503;
    if (request.url === "/slow") {
      response.write("begun ");
      await gate.promise;
    }
    response.end(name);
  }).listen(port, "127.0.0.1");
  await once(server, "listening");
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(stop);
  return { port: (server.address() as AddressInfo).port, state, goOn: gate.resolve, stop };
}

async function start(targets: readonly number[], options: Partial<BalancerOptions> = {}): Promise<Balancer> {
  const balancer = await startBalancer({ host: "127.0.0.1", port: 0, pollMs: 10, ...options });
  for (const target of targets) balancer.add(target);
  onTestFinished(() => balancer.close());
  return balancer;
}

/** One request on a connection of its own. */
async function ask({ port }: Balancer, path = "/"): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: "close" } });
  return response.text();
}

describe("a balancer", () => {
  test("gives connections to ready replicas in turn, and to others none", async () => {
    const [one, two] = [await startReplica("one"), await startReplica("two")];
    const balancer = await start([one.port, two.port]);
    await waitUntil(() => balancer.ready.length === 2);
    const names = [];
    for (let index = 0; index < 10; index += 1) names.push(await ask(balancer));
    expect(names.toSorted()).toEqual([...Array(5).fill("one"), ...Array(5).fill("two")]);

    one.state.isReady = false;
    await balancer.settled(one.port, false);
    expect(await Promise.all(Array.from({ length: 10 }, () => ask(balancer)))).toEqual(Array(10).fill("two"));
    one.state.isReady = true;
    await balancer.settled(one.port, true);
    expect(await Promise.all([ask(balancer), ask(balancer)])).toContain("one");

    balancer.remove(two.port);
    expect(balancer.ready).toEqual([one.port]);
    expect(await Promise.all([ask(balancer), ask(balancer)])).toEqual(["one", "one"]);
  });

  test("lets what runs on a replica end that is no longer ready", async () => {
    const one = await startReplica("one");
    const balancer = await start([one.port]);
    const response = await fetch(`http://127.0.0.1:${balancer.port}/slow`);
    one.state.isReady = false;
    await balancer.settled(one.port, false);
    one.goOn();
    expect(await response.text()).toBe("begun one");
  });

  test("gives a connection to another replica when the one is gone that was ready a moment ago", async () => {
    const [one, two] = [await startReplica("one"), await startReplica("two")];
    // It asks once, and then not again while this runs.
    const balancer = await start([one.port, two.port], { pollMs: 60_000 });
    await waitUntil(() => balancer.ready.length === 2);
    one.stop();
    expect(await Promise.all([ask(balancer), ask(balancer)])).toEqual(["two", "two"]);
    expect([balancer.ready, balancer.refused]).toEqual([[two.port], 1]);
    expect(await Promise.all([ask(balancer), ask(balancer)])).toEqual(["two", "two"]);
    expect(balancer.refused).toBe(1);
  });

  test("lets connections wait until somebody is ready", async () => {
    const one = await startReplica("one");
    one.state.isReady = false;
    const balancer = await start([one.port]);
    const answers = [ask(balancer), ask(balancer)];
    await ask({ ...balancer, port: one.port }, "/readyz");
    one.state.isReady = true;
    expect(await Promise.all(answers)).toEqual(["one", "one"]);
  });

  test("breaks connections off for which nobody comes, and those that run when it closes", async () => {
    const balancer = await start([], { patienceMs: 20 });
    await expect(ask(balancer)).rejects.toThrow();

    const one = await startReplica("one");
    const closing = await startBalancer({ host: "127.0.0.1", port: 0, pollMs: 10 });
    closing.add(one.port);
    const response = await fetch(`http://127.0.0.1:${closing.port}/slow`);
    await closing.close();
    await expect(response.text()).rejects.toThrow();
    await expect(once(connect(closing.port, "127.0.0.1"), "connect")).rejects.toThrow();
  });

  test("passes a broken connection on to the other side as one", async () => {
    const one = await startReplica("one");
    const balancer = await start([one.port]);
    const response = await fetch(`http://127.0.0.1:${balancer.port}/slow`);
    one.stop();
    await expect(response.text()).rejects.toThrow();
  });
});
