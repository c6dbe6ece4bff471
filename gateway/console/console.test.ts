import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { AddressLimiter } from "../../lib/rate-limit/address-limiter.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  errorOf,
  type GatewayServer,
  startGatewayServer,
} from "../../test/support/services/gateway-server.ts";
import { readConsole } from "./assets.ts";

const index = `<!doctype html><script type="module" src="./console/index-abc.js"></script>${" ".repeat(600)}`;
const script = `console.log("${"a".repeat(900)}");`;
let folder: string;
let gateway: GatewayServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "console-"));
  await mkdir(join(folder, "console"));
  await writeFile(join(folder, "index.html"), index);
  const name = join(folder, "console", "index-abc.js");
  await writeFile(name, script);
  await writeFile(`${name}.br`, brotliCompressSync(script));
  await writeFile(`${name}.gz`, gzipSync(script));
  gateway = await startGatewayServer({ consoleFiles: await readConsole(folder) });
});

afterAll(async () => {
  await gateway.close({ delayMs: 0, timeoutMs: 0 });
  await rm(folder, { recursive: true });
});

/** What comes over the wire, undecoded. */
function raw(
  path: string,
  headers: Record<string, string>,
): Promise<{ coding: string | undefined; bytes: number }> {
  return new Promise((resolve, reject) => {
    const sent = request(gateway.baseUrl + path, { headers }, (response) => {
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on("end", () => resolve({ coding: response.headers["content-encoding"], bytes }));
    });
    sent.on("error", reject).end();
  });
}

describe("the page", () => {
  test("needs no key, and may load and call nothing but the gateway", async () => {
    const response = await fetch(`${gateway.baseUrl}/`);
    expect([response.status, await response.text()]).toEqual([200, index]);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
  });

  test("is asked for anew each time, and comes again only when it has changed", async () => {
    const first = await fetch(`${gateway.baseUrl}/`);
    await first.text();
    expect(first.headers.get("cache-control")).toBe("no-cache");
    const etag = first.headers.get("etag") ?? "";
    const again = await fetch(`${gateway.baseUrl}/`, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const other = await fetch(`${gateway.baseUrl}/`, { headers: { "if-none-match": '"other"' } });
    expect([other.status, await other.text()]).toEqual([200, index]);
  });

  test("has files that never change and come in the smallest form that is taken", async () => {
    const response = await fetch(`${gateway.baseUrl}/console/index-abc.js`);
    expect(await response.text()).toBe(script);
    expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(response.headers.get("vary")).toBe("accept-encoding");
    const bytesOf = async (accepted: string) => raw("/console/index-abc.js", { "accept-encoding": accepted });
    expect(await bytesOf("gzip, br")).toEqual({ coding: "br", bytes: brotliCompressSync(script).length });
    expect(await bytesOf("gzip, br;q=0")).toEqual({ coding: "gzip", bytes: gzipSync(script).length });
    expect(await bytesOf("identity")).toEqual({ coding: undefined, bytes: script.length });
  });

  test.for([
    "/console/",
    "/console/index-abc.js.br",
    "/console/other.js",
    "/console/..%2findex.html",
    "/keys",
  ])("%s is as unknown as before", async (path) => {
    const response = await fetch(gateway.baseUrl + path);
    expect(await errorOf(response)).toEqual({ status: 404, reason: "route_unknown" });
  });

  test("is not there where it was not built", async () => {
    expect(await readConsole(join(folder, "nowhere"))).toBeUndefined();
    await using bare = await startGatewayServer();
    expect(await errorOf(await fetch(`${bare.baseUrl}/`))).toEqual({ status: 404, reason: "route_unknown" });
  });
});

describe("signing in by a code", () => {
  const code = "the-code-of-a-link";
  const internal = {
    redeemConsoleLink(asked: { readonly code: string }) {
      if (asked.code !== code) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such record");
      const expiresAt = timestampFromMs(Date.UTC(2030, 0, 31, 12));
      return { inferenceKey: "sk-inference-key", managementKey: "sk-management-key", expiresAt };
    },
  };
  const exchange = (server: GatewayServer, body: unknown) =>
    fetch(`${server.baseUrl}/api/v1/console/session`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });

  test("gives keys that nothing keeps or logs", async () => {
    await using server = await startGatewayServer({ accountHandlers: { internal } });
    const response = await exchange(server, { code });
    expect([response.status, response.headers.get("cache-control")]).toEqual([201, "no-store"]);
    expect(await response.json()).toEqual({
      data: {
        inference_key: "sk-inference-key",
        management_key: "sk-management-key",
        expires_at: "2030-01-31T12:00:00.000Z",
      },
    });
    expect(server.logged).not.toEqual([]);
    for (const secret of [code, "sk-inference-key", "sk-management-key"]) {
      expect(JSON.stringify(server.logged)).not.toContain(secret);
    }
  });

  test.for([
    [{ code: "another" }, 404, "record_unknown"],
    [{}, 400, "invalid_body"],
    [{ code: 5 }, 400, "invalid_body"],
    [{ code: "x".repeat(5000) }, 400, "body_too_large"],
  ] as const)("refuses %j", async ([body, status, reason]) => {
    await using server = await startGatewayServer({ accountHandlers: { internal } });
    expect(await errorOf(await exchange(server, body))).toEqual({ status, reason });
  });

  test("counts those who try", async () => {
    const strangers = new AddressLimiter({ ANONYMOUS_LIMIT_PER_MINUTE: 2, TRUSTED_PROXIES: [] });
    await using server = await startGatewayServer({ accountHandlers: { internal }, strangers });
    const statuses: number[] = [];
    for (let tries = 0; tries < 4; tries++) {
      const response = await exchange(server, { code: "another" });
      statuses.push(response.status);
      await response.text();
    }
    expect(statuses).toEqual([404, 404, 429, 429]);
  });

  test("is not offered where the console is off", async () => {
    await using server = await startGatewayServer({
      accountHandlers: { internal },
      settings: { hasConsole: false },
    });
    expect(await errorOf(await exchange(server, { code }))).toEqual({ status: 404, reason: "route_unknown" });
  });
});
