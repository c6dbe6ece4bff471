/** Every RPC that there is, over every wire: who calls is asked before a byte of the body is there. */
import { readdirSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { bodyOf, encodingHeaderOf, nameOfWire, openCall, rpcWires } from "../../test/support/rpc-wire.ts";
import { serverInterceptor } from "../rpc/interceptors.ts";
import { type RpcServer, startRpcServer } from "../rpc/server.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { silentLog } from "../runtime/log.ts";
import { accessTable } from "./access.ts";
import { createIdentityInterceptor } from "./identity-interceptor.ts";

const generated = join(import.meta.dirname, "../../gen/media");

/** From what has been generated, so that an RPC that comes later is among them. */
async function allServices(): Promise<DescService[]> {
  const files = readdirSync(generated, { recursive: true, encoding: "utf8" });
  const modules = await Promise.all(
    files.filter((file) => file.endsWith("_service_pb.ts")).map((file) => import(join(generated, file))),
  );
  return modules.flatMap((module) =>
    Object.values(module).filter((value): value is DescService => (value as DescService).kind === "service"),
  );
}

const services = await allServices();
const methods: readonly DescMethod[] = services.flatMap((service) => service.methods);
let server: RpcServer;
let baseUrl: string;

beforeAll(async () => {
  const refuse = () => Promise.reject(new DomainError(ErrorReason.KEY_UNKNOWN, "not known"));
  const identity = createIdentityInterceptor({
    audience: "account",
    authenticateKey: refuse,
    verifyToken: refuse,
  });
  server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services,
    routes(router) {
      for (const service of services) {
        router.service(service, {}, { interceptors: [serverInterceptor(silentLog), identity] });
      }
    },
    readiness: async () => [],
    log: silentLog,
  });
  baseUrl = `http://127.0.0.1:${server.port}`;
});

afterAll(() => server.drain({ delayMs: 0, timeoutMs: 0 }));

/** Of this process, microseconds. */
function cpuTime(): number {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  return userCPUTime + systemCPUTime;
}

function openSession(): ClientHttp2Session {
  const session = connect(baseUrl).setMaxListeners(0);
  onTestFinished(() => session.destroy());
  return session;
}

test("all services are there", () => {
  expect(services.map(({ typeName }) => typeName).sort()).toEqual([...accessTable.keys()].sort());
  expect(methods.length).toBeGreaterThan(40);
});

describe.for(rpcWires.map((wire) => [nameOfWire(wire), wire] as const))("%s", ([, wire]) => {
  test.for([
    ["nobody", {}],
    ["an unknown key", { authorization: `Bearer sk-${"a".repeat(43)}` }],
    ["a token of nobody", { authorization: "Bearer a.b.c" }],
  ] as const)("every RPC refuses %s, though nothing of the body has come", async ([, headers]) => {
    const session = openSession();
    for (const method of methods) {
      const call = openCall(baseUrl, wire, method, { ...headers, "content-length": "30000" }, session);
      const { code, headers: answered } = await call.answer;
      expect(code, method.toString()).toBe(Code.Unauthenticated);
      expect(answered["x-request-id"], method.toString()).toMatch(/^req-/);
      call.cut();
    }
  });

  test("a bomb that nobody is known to send is neither inflated nor parsed", async () => {
    const text = `{"zz":[${"[],".repeat(1_500_000)}[]]}`;
    const bomb = gzipSync(text);
    const parsing = cpuTime();
    JSON.parse(text);
    const parsed = cpuTime();
    const session = openSession();
    for (const method of methods) {
      const headers = { [encodingHeaderOf(wire, method)]: "gzip" };
      const call = openCall(baseUrl, wire, method, headers, session);
      call.write(bodyOf(wire, method, bomb, true));
      call.end();
      expect((await call.answer).code, method.toString()).toBe(Code.Unauthenticated);
    }
    expect((cpuTime() - parsed) / methods.length).toBeLessThan((parsed - parsing) / 2);
  });
});
