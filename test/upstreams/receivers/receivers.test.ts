import { createHash } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test } from "vitest";
import { decodeExport, decodeJsonExport } from "./otlp-decode.ts";
import { startOtlpReceiver } from "./otlp-receiver.ts";
import type { Receiver } from "./receiver.ts";
import { startS3Receiver } from "./s3-receiver.ts";
import { startWebhookReceiver } from "./webhook-receiver.ts";

async function closing<R extends Receiver>(starting: Promise<R>): Promise<R> {
  const receiver = await starting;
  onTestFinished(() => receiver.close());
  return receiver;
}

const noSpans = '{"resourceSpans":[]}';

test("the stand-in for OTLP takes protobuf, at its path, with the right password", async () => {
  const receiver = await closing(startOtlpReceiver({ basic: { user: "u", password: "p" } }));
  const post = async (path: string, headers: Record<string, string>, body = "") =>
    (await fetch(receiver.baseUrl + path, { method: "POST", headers, body })).status;
  const good = { authorization: `Basic ${btoa("u:p")}`, "content-type": "application/x-protobuf" };
  expect(await post("/v1/traces", good)).toBe(200);
  expect(await post("/v1/trace", good)).toBe(404);
  expect(await post("/v1/traces", { ...good, authorization: `Basic ${btoa("u:q")}` })).toBe(401);
  expect(await post("/v1/traces", { ...good, "content-type": "application/json" })).toBe(415);
  expect(await post("/v1/traces", good, "x")).toBe(400);
});

test("what decodes OTLP takes nothing that OTLP does not have", () => {
  expect(decodeExport(new Uint8Array())).toEqual([]);
  // Field 9 of the request.
  expect(() => decodeExport(Buffer.from([0x4a, 0x01, 0x61]))).toThrow("does not have");
  expect(decodeJsonExport(noSpans)).toEqual([]);
  expect(() => decodeJsonExport('{"resource_span":[]}')).toThrow("unknown");
  const span = (ids: string) => `{"resourceSpans":[{"scopeSpans":[{"spans":[{${ids},"kind":3}]}]}]}`;
  const ids = `"traceId":"${"1".repeat(32)}","spanId":"${"2".repeat(16)}"`;
  expect(decodeJsonExport(span(ids))).toMatchObject([
    { traceId: "1".repeat(32), spanId: "2".repeat(16), parentSpanId: "" },
  ]);
  expect(() => decodeJsonExport(span(ids.replace("1", "")))).toThrow("id");
  expect(() => decodeJsonExport(span(ids.replaceAll("2", "0")))).toThrow("id");
});

test("the stand-in for webhooks takes only what is signed with its secret", async () => {
  const secret = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;
  const receiver = await closing(startWebhookReceiver({ secret }));
  const sign = (body: string, signer = new Webhook(secret), at = new Date()) => ({
    "content-type": "application/json",
    "webhook-id": "1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": signer.sign("1", at, body),
  });
  const post = async (headers: Record<string, string>, body = noSpans) =>
    (await fetch(`${receiver.baseUrl}/hook`, { method: "POST", headers, body })).status;
  expect(await post(sign(noSpans))).toBe(204);
  expect(await post(sign(noSpans), `${noSpans} `)).toBe(401);
  const other = new Webhook(Buffer.alloc(24, 2).toString("base64"));
  expect(await post(sign(noSpans, other))).toBe(401);
  expect(await post(sign(noSpans, undefined, new Date(Date.now() - 600_000)))).toBe(401);
  expect(await post({ "content-type": "application/json" })).toBe(400);
  expect(await post(sign("[]"), "[]")).toBe(400);
  const unsigned = await closing(startWebhookReceiver());
  const { status } = await fetch(`${unsigned.baseUrl}/hook`, {
    method: "POST",
    headers: sign(noSpans),
    body: noSpans,
  });
  expect(status).toBe(400);
});

test("the store takes nothing unsigned, and no body with another's digest", async () => {
  const receiver = await closing(startS3Receiver());
  const put = (headers: Record<string, string>) =>
    fetch(`${receiver.baseUrl}/${receiver.bucketName}/a`, { method: "PUT", headers, body: "x" });
  expect((await put({})).status).toBe(403);
  const signed = {
    authorization:
      "AWS4-HMAC-SHA256 Credential=S3RVER/20300101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00",
    "x-amz-date": new Date().toISOString().replace(/[-:]|\.\d+/g, ""),
  };
  const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");
  const other = await put({ ...signed, "x-amz-content-sha256": digestOf("y") });
  expect([other.status, await other.text()]).toEqual([400, expect.stringContaining("SHA256Mismatch")]);
  const wrong = await put({ ...signed, "x-amz-content-sha256": digestOf("x") });
  expect([wrong.status, await wrong.text()]).toEqual([403, expect.stringContaining("SignatureDoesNotMatch")]);
  expect(await receiver.keys()).toEqual([]);
});

test("a queued behaviour waits for a good request", async () => {
  const receiver = await closing(startOtlpReceiver());
  receiver.next({ kind: "answer", status: 503, headers: { "retry-after": "1" }, body: "later" });
  const post = (contentType: string) =>
    fetch(`${receiver.baseUrl}/v1/traces`, { method: "POST", headers: { "content-type": contentType } });
  expect((await post("text/plain")).status).toBe(415);
  const answer = await post("application/x-protobuf");
  expect([answer.status, answer.headers.get("retry-after"), await answer.text()]).toEqual([
    503,
    "1",
    "later",
  ]);
  expect((await post("application/x-protobuf")).status).toBe(200);
});
