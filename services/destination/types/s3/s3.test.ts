import { create } from "@bufbuild/protobuf";
import { TimestampSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test, vi } from "vitest";
import { usageEvent } from "../../../../test/support/services/usage-events.ts";
import { type S3Receiver, startS3Receiver } from "../../../../test/upstreams/receivers/s3-receiver.ts";
import type { Batch } from "../contract.ts";
import {
  deliveryErrorOf,
  describeDestinationType,
  suiteBatch,
  suiteContext,
  suiteHttp,
} from "../type.suite.ts";
import type { S3Config } from "./config.ts";
import { s3 } from "./index.ts";
import { renderObjectPath } from "./object-path.ts";

const credentials = { bucketName: "traces", accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };

describeDestinationType(s3, async () => ({
  receiver: await startS3Receiver(),
  configAt: (baseUrl) => ({ ...credentials, endpoint: baseUrl }),
  wrongConfigAt: (baseUrl) => ({ ...credentials, secretAccessKey: "another", endpoint: baseUrl }),
  read: ({ path, json, text }) => {
    const isTest = (json as { connection_test?: boolean } | undefined)?.connection_test === true;
    const lines = isTest ? [] : text.split("\n").slice(0, -1);
    return {
      deliveryId: /\/([^/]*)\.jsonl(\?|$)/.exec(path)?.[1],
      events: lines
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .map(({ generation_id: eventId, revision }) => ({ eventId, revision })),
    };
  },
  ownHeaders: ["authorization", "x-amz-date", "X-Amz-Security-Token", "x-amz-content-sha256"],
}));

async function start(): Promise<S3Receiver> {
  const receiver = await startS3Receiver();
  onTestFinished(() => receiver.close());
  return receiver;
}

function read(config: Record<string, unknown>): S3Config {
  const result = s3.readConfig({ ...credentials, ...config } as never);
  if ("issues" in result) throw new Error(JSON.stringify(result.issues));
  return result.config;
}

const put = (batch: Batch, config: S3Config) => s3.deliver(batch, config, suiteContext(suiteHttp()));

test("a server that verifies signatures stores the object, and a repetition replaces it", async () => {
  const receiver = await start();
  const config = read({ endpoint: receiver.baseUrl });
  await put(suiteBatch, config);
  await put(suiteBatch, config);
  const key = `openrouter-traces/2030-01-01/${suiteBatch.id}.jsonl`;
  expect(await receiver.keys()).toEqual([key]);
  const stored = await receiver.objectAt(key);
  expect(stored?.contentType).toBe("application/x-ndjson");
  const lines = stored?.body.toString().split("\n");
  expect(lines).toHaveLength(3);
  expect(JSON.parse(lines?.[1] ?? "")).toMatchObject({ generation_id: "gen-img-2", outcome: "lost" });
});

test("names of any script, and headers of its owner, are signed as they are sent", async () => {
  const receiver = await start();
  const config = read({
    endpoint: receiver.baseUrl,
    prefix: "Tonspuren/ü ('1')*!~",
    pathTemplate: "/{prefix}//{year}/{month}/{day}/{hour}/音/",
    headers: { "x-amz-storage-class": "STANDARD_IA" },
  });
  await put(suiteBatch, config);
  const key = `Tonspuren/ü ('1')*!~/2030/01/01/12/音/${suiteBatch.id}.jsonl`;
  expect((await receiver.objectAt(key))?.body.length).toBeGreaterThan(0);
  const { headers } = await receiver.received(1);
  expect(headers["x-amz-storage-class"]).toBe("STANDARD_IA");
  expect(headers.authorization).toContain("x-amz-storage-class");
  expect(headers["user-agent"]).toBe("media-gateway");
});

test("a session token goes along, signed", async () => {
  const receiver = await start();
  await put(suiteBatch, read({ endpoint: receiver.baseUrl, sessionToken: "lent" }));
  const { headers } = await receiver.received(1);
  expect(headers["x-amz-security-token"]).toBe("lent");
  expect(headers.authorization).toContain("x-amz-security-token");
});

test("a wrong secret, a wrong key and a bucket that is not there are distinguished", async () => {
  const receiver = await start();
  const messageOf = async (config: Record<string, unknown>) =>
    (await deliveryErrorOf(put(suiteBatch, read({ endpoint: receiver.baseUrl, ...config })))).message;
  expect(await messageOf({ secretAccessKey: "other" })).toBe("the secret access key is not the right one");
  expect(await messageOf({ accessKeyId: "other" })).toBe("the access key id is not known");
  expect(await messageOf({ bucketName: "other" })).toBe("the bucket does not exist");
  expect(await receiver.keys()).toEqual([]);
});

test("a request is signed for the time that it is given", async () => {
  const receiver = await start();
  const context = { ...suiteContext(suiteHttp()), nowMs: () => Date.UTC(2030, 0, 2, 3, 4, 5) };
  await s3.deliver(suiteBatch, read({ endpoint: receiver.baseUrl }), context);
  expect((await receiver.received(1)).headers["x-amz-date"]).toMatch(/^20300102T0304/);
});

test.for([
  ["RequestTimeTooSkewed", 403, "clocks"],
  ["PermanentRedirect", 301, "another region"],
  ["AuthorizationHeaderMalformed", 400, "another region"],
  ["ExpiredToken", 400, "expired"],
  ["AccessDenied", 403, "may not write to this bucket"],
  ["Unheard", 403, "credentials"],
] as const)("the store's error %s of %d is said in our words", async ([code, status, words]) => {
  const receiver = await start();
  receiver.next({ kind: "answer", status, body: `<Error><Code>${code}</Code></Error>` });
  const error = await deliveryErrorOf(put(suiteBatch, read({ endpoint: receiver.baseUrl })));
  expect(error).toMatchObject({ status, message: expect.stringContaining(words) });
});

test("what takes the object without naming its tag is no store", async () => {
  const receiver = await start();
  receiver.next({ kind: "answer", status: 200, body: "ok" });
  const error = await deliveryErrorOf(put(suiteBatch, read({ endpoint: receiver.baseUrl })));
  expect(error).toMatchObject({ status: 200, message: "what answers at the address is no S3 store" });
});

test("a test leaves a marked object beside the others", async () => {
  const receiver = await start();
  const context = { ...suiteContext(suiteHttp()), nowMs: () => Date.now() };
  await s3.test(read({ endpoint: receiver.baseUrl, pathTemplate: "{prefix}" }), context);
  const stored = await receiver.objectAt("openrouter-traces/connection-test.json");
  expect(stored?.body.toString()).toBe('{"connection_test":true}\n');
});

test("the process's own environment changes nothing", async () => {
  const receiver = await start();
  const other = {
    AWS_ENDPOINT_URL: "http://127.0.0.1:9",
    AWS_ENDPOINT_URL_S3: "http://127.0.0.1:9",
    AWS_ACCESS_KEY_ID: "other",
    AWS_SECRET_ACCESS_KEY: "other",
    AWS_SESSION_TOKEN: "other",
    AWS_REGION: "eu-other-1",
    AWS_PROFILE: "other",
    AWS_USE_FIPS_ENDPOINT: "true",
  };
  for (const [name, value] of Object.entries(other)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  await put(suiteBatch, read({ endpoint: receiver.baseUrl }));
  const { headers } = await receiver.received(1);
  expect(headers.authorization).toContain("Credential=S3RVER/");
  expect(headers.authorization).toContain("/us-east-1/s3/");
  expect(headers).not.toHaveProperty("x-amz-security-token");
});

test.for([
  [{}, "https://traces.s3.us-east-1.amazonaws.com/"],
  [{ region: "eu-central-1" }, "https://traces.s3.eu-central-1.amazonaws.com/"],
  [{ region: "cn-north-1", bucketName: "a.b" }, "https://s3.cn-north-1.amazonaws.com.cn/"],
  [{ endpoint: "http://store.example:9000/base" }, "http://store.example:9000/base"],
] as const)("with %j it calls %s", async ([config, url]) => {
  expect(s3.urlsOf(read(config)).map(({ href }) => href)).toEqual([url]);
  const sent: string[] = [];
  const http = {
    send: async (request: { url: string }) => {
      sent.push(new URL(request.url).host);
      return { status: 200, headers: { etag: '"1"' }, body: new Uint8Array() };
    },
  };
  await s3.deliver(suiteBatch, read(config), { ...suiteContext(suiteHttp()), http });
  expect(sent).toEqual([new URL(url).host]);
});

test.for([
  ["bucketName", "a/b"],
  ["bucketName", "arn:aws:s3:::traces"],
  ["region", "us-east-1.evil.example/"],
  ["endpoint", "s3.example"],
  ["prefix", "a/../b"],
  ["prefix", "a\u0000b"],
  ["prefix", "\ud800"],
  ["pathTemplate", "./{date}"],
  ["pathTemplate", "{apiKeyName}/{date}"],
  ["pathTemplate", "{Date}"],
  ["sessionToken", "a b"],
])("a %s %j is refused", ([name = "", value = ""]) => {
  const result = s3.readConfig({ ...credentials, [name]: value });
  expect(result).toMatchObject({ issues: [{ path: `config.${name}` }] });
});

test("a path is made of the placeholders and no empty parts", () => {
  const instant = timestampFromMs(Date.UTC(2026, 0, 2, 3));
  const render = (template: string) => renderObjectPath(template, "my/{date}", instant);
  expect(render("{prefix}/{date}")).toBe("my/{date}/2026-01-02");
  expect(render("{year}{month}{day}{hour}")).toBe("2026010203");
  expect(render("//a//b/")).toBe("a/b");
  expect(renderObjectPath("{date}", "", undefined)).toBe("1970-01-01");
  expect(renderObjectPath("{date}", "", create(TimestampSchema, { seconds: 2n ** 62n }))).toBe("1970-01-01");
});

test("an object without a path has its name alone", async () => {
  const receiver = await start();
  await put(
    { ...suiteBatch, events: [usageEvent()] },
    read({ endpoint: receiver.baseUrl, pathTemplate: "/" }),
  );
  expect(await receiver.keys()).toEqual([`${suiteBatch.id}.jsonl`]);
});
