import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import sharp from "sharp";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectUnharmed, printDamages, startTarget, type Target, underAttack } from "./target.ts";

const small = { model: "local/painter", prompt: "A fox", resolution: "512", output_format: "svg" };
/** What stalls after this many bytes of what it announces. */
const stallsAfterBytes = 6 << 20;
const announcedBytes = 20 << 20;
const side = 4000;

let target: Target;
let stalling: Server;

beforeAll(async () => {
  target = await startTarget({ REFERENCE_ALLOWED_CIDRS: "127.0.0.0/8" });
  stalling = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "image/png", "content-length": announcedBytes });
    response.write(Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(stallsAfterBytes)]));
  });
  stalling.listen(0, "127.0.0.1");
  await once(stalling, "listening");
}, 120_000);

afterAll(async () => {
  printDamages("references");
  stalling?.close();
  stalling?.closeAllConnections();
  await target?.close();
});

test("downloads that stall leave room for others", async () => {
  const url = `http://127.0.0.1:${(stalling.address() as AddressInfo).port}`;
  const statuses: number[] = [];
  const damage = await underAttack(target, "16 requests of 3 downloads that stall", async () => {
    const attacks = Array.from({ length: 16 }, () => draw(target.inferenceKey, [url, url, url]));
    for (let turn = 0; turn < 5; turn++) statuses.push(await draw(target.neighbourKey, [await dataUrl(64)]));
    for (const status of await Promise.all(attacks)) expect(status).not.toBe(200);
  });
  expect(statuses).toEqual([200, 200, 200, 200, 200]);
  expectUnharmed(damage);
}, 120_000);

test("images that are dear to decode are decoded in turns with those of others", async () => {
  const dear = await dataUrl(side);
  const statuses: number[] = [];
  let ended = 0;
  const damage = await underAttack(target, "16 interlaced images of 16 bits", async () => {
    const attacks = Array.from({ length: 16 }, () =>
      draw(target.inferenceKey, [dear]).finally(() => ended++),
    );
    statuses.push(await draw(target.neighbourKey, [await dataUrl(64)]));
    // Not behind all of them.
    expect(ended).toBeLessThan(16);
    await Promise.all(attacks);
  });
  expect(statuses).toEqual([200]);
  expectUnharmed(damage);
}, 120_000);

/** Interlaced, 16 bits a channel: no row is whole before the last pass. */
async function dataUrl(width: number): Promise<string> {
  const image = sharp({ create: { width, height: width, channels: 3, background: "#3a6" } });
  const bytes = await image.toColourspace("rgb16").png({ progressive: true }).toBuffer();
  return `data:image/png;base64,${bytes.toString("base64")}`;
}

async function draw(key: string, urls: readonly string[]): Promise<number> {
  const input_references = urls.map((url) => ({ type: "image_url", image_url: { url } }));
  const response = await fetch(`${target.baseUrl}/api/v1/images`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ ...small, input_references }),
  });
  await response.arrayBuffer();
  return response.status;
}
