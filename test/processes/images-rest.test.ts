import { createHash } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { needKafka } from "../support/kafka/kafka.ts";
import { kafkaPatienceMs, kafkaTimeoutMs } from "../support/kafka/kafka-stage.ts";
import {
  createKey,
  type DrawOptions,
  decode,
  draw,
  eventsOf,
  flatPng,
  type ImageEvent,
  type ImageFlow,
  type ImageFlows,
  imageOf,
  imagesOf,
  imageWays,
  leastPicture,
  read,
  startImageFlows,
  upstreamPicture,
} from "../support/processes/image-flow.ts";
import { errorOf } from "../support/services/gateway-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { shadeOf } from "../upstreams/openai/openai-image.ts";
import { type StandIn, startStandIn } from "../upstreams/stand-in/stand-in-server.ts";

const maxBodyBytes = 1 << 20;
/** Usage may take its way through Kafka. */
const patience = { timeoutMs: kafkaPatienceMs };
const red = "#d01020";
const blue = "#1020d0";

const dataUrl = (png: Buffer) => `data:image/png;base64,${png.toString("base64")}`;
const reference = (url: string) => ({ type: "image_url", image_url: { url } });
const postcard = { ...leastPicture, model: "local/postcard", resolution: undefined };

let pictures: StandIn;
let flows: ImageFlows;

beforeAll(async () => {
  pictures = await startStandIn(async (_request, answer) => {
    answer.start(200, { "content-type": "application/octet-stream" });
    answer.end(await flatPng(red));
  });
  flows = await startImageFlows({
    env: { MAX_BODY_MIB: "1", REFERENCE_ALLOWED_CIDRS: "127.0.0.1/32" },
    withKafka: true,
  });
}, 120_000);

afterAll(async () => {
  await flows?.[Symbol.asyncDispose]();
  await pictures?.close();
});

describe.for(imageWays)("images over REST, %s,", (way) => {
  const ask = (body: object | string, options?: DrawOptions) => draw(flows.in(way), body, options);

  describe("a picture", () => {
    test.for(["png", "jpeg", "webp"] as const)("comes as %s, and says so", async (format) => {
      const body = { ...leastPicture, aspect_ratio: "2:1", output_format: format };
      const response = await ask(body, { headers: { "x-request-id": "mine" } });
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(response.headers.get("x-generation-id")).toMatch(/^gen-img-/);
      expect(response.headers.get("x-request-id")).toBe("mine");
      const { created, images, usage } = await imagesOf(response);
      expect(images.map(({ mediaType }) => mediaType)).toEqual([`image/${format}`]);
      const bytes = images[0]?.bytes ?? Buffer.alloc(0);
      const { hasAlpha, ...metadata } = await sharp(bytes).metadata();
      expect(metadata).toMatchObject({ format, width: 724, height: 362 });
      expect(hasAlpha).toBe(false);
      await decode(bytes);
      expect(Math.abs(created - Date.now() / 1000)).toBeLessThan(60);
      const tokens = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
      expect(usage).toEqual({ ...tokens, cost: 0.001, is_byok: false });
    });

    test("comes as svg: markup in UTF-8 of the size that was asked for", async () => {
      const { images } = await imagesOf(
        await ask({ ...leastPicture, size: "640x320", output_format: "svg" }),
      );
      expect(images[0]?.mediaType).toBe("image/svg+xml");
      const markup = new TextDecoder("utf-8", { fatal: true }).decode(images[0]?.bytes);
      expect(markup).toMatch(/^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
      expect(await sharp(Buffer.from(markup)).metadata()).toMatchObject({ width: 640, height: 320 });
    });

    test.for(["png", "webp"])("of a transparent background has one, as %s", async (format) => {
      const body = { ...leastPicture, background: "transparent", output_format: format };
      const { data, channels } = await decode(await imageOf(await ask(body)));
      expect(channels).toBe(4);
      const alphas = data.filter((_value, index) => index % 4 === 3);
      const share = (test: (alpha: number) => boolean) => alphas.filter(test).length / alphas.length;
      expect(share((alpha) => alpha === 0)).toBeGreaterThan(0.2);
      expect(share((alpha) => alpha === 255)).toBeGreaterThan(0.05);
    });

    test("is the same for the same seed, and another for another", async () => {
      const make = async (seed: number) => {
        const bytes = await imageOf(await ask({ ...leastPicture, seed }));
        return createHash("sha256").update(bytes).digest("hex");
      };
      const [first, again, other] = await Promise.all([make(7), make(7), make(8)]);
      expect(again).toBe(first);
      expect(other).not.toBe(first);
    });

    test("takes the colours of its references, by data URL and fetched", async () => {
      const body = { ...leastPicture, seed: 3 };
      const warmth = async (url: string) => {
        const answer = await ask({ ...body, input_references: [reference(url)] });
        const [r, , b] = (await sharp(await imageOf(answer)).stats()).channels;
        return (r?.mean ?? 0) - (b?.mean ?? 0);
      };
      const warm = await warmth(dataUrl(await flatPng(red)));
      const cold = await warmth(dataUrl(await flatPng(blue)));
      expect(warm).toBeGreaterThan(cold + 20);
      expect(await warmth(`${pictures.baseUrl}/${encodeURIComponent(way)}`)).toBe(warm);
      expect(pictures.requests.at(-1)?.path).toBe(`/${encodeURIComponent(way)}`);
    });

    test("names what of the prompt it did not understand in a header", async () => {
      const unrecognizedIn = async (body: object) => {
        const response = await ask(body);
        await response.arrayBuffer();
        expect(response.status).toBe(200);
        return response.headers.get("x-unrecognized-prompt-words");
      };
      const odd = { ...leastPicture, prompt: "a gryphon by a lake; 正義" };
      expect(await unrecognizedIn(odd)).toBe("gryphon,%E6%AD%A3%E7%BE%A9");
      expect(await unrecognizedIn({ ...odd, stream: true })).toBe("gryphon,%E6%AD%A3%E7%BE%A9");
      expect(await unrecognizedIn({ ...leastPicture, prompt: "a cat by a lake" })).toBeNull();
    });

    test("names what has no effect in a header", async () => {
      const ignoredBy = async (body: object) => {
        const response = await ask({ ...body, output_compression: 40 });
        await imageOf(response);
        return response.headers.get("x-ignored-parameters");
      };
      expect(await ignoredBy(leastPicture)).toBe("output_compression");
      expect(await ignoredBy({ ...postcard, quality: "high" })).toBe("output_compression,quality");
      const size = async (output_compression: number) =>
        (await imageOf(await ask({ ...leastPicture, output_format: "jpeg", output_compression, seed: 1 })))
          .length;
      expect(await size(20)).toBeLessThan((await size(95)) / 2);
    });
  });

  describe("a size", () => {
    test.for<[string, object, readonly [number, number]]>([
      ["a tier", { size: "1K" }, [1024, 1024]],
      ["a tier twice", { size: "1K", resolution: "1K", aspect_ratio: "4:1" }, [2048, 512]],
      ["pixels", { size: "768x640" }, [768, 640]],
      ["pixels that match", { size: "1024x512", aspect_ratio: "2:1", resolution: "512" }, [1024, 512]],
      ["an odd ratio", { aspect_ratio: "9:19.5", resolution: "512" }, [348, 754]],
      ["a plain provider's nearest", { model: "local/postcard", aspect_ratio: "16:9" }, [1536, 1024]],
    ])("comes out as it says: %s", async ([, fields, [width, height]]) => {
      const { resolution: _, ...rest } = leastPicture;
      const bytes = await imageOf(await ask({ ...rest, output_format: "jpeg", ...fields }));
      expect(await decode(bytes)).toMatchObject({ width, height });
    });

    test.for<[object, string, readonly string[]]>([
      [{ size: "1024x1024", aspect_ratio: "16:9" }, "size_conflict", ["aspect_ratio"]],
      [{ size: "1024x1024", resolution: "4K" }, "size_conflict", ["resolution"]],
      [{ size: "2K", resolution: "1K" }, "size_conflict", ["resolution"]],
      [{ size: "12000x12000" }, "unsupported_parameter", ["size"]],
      [{ size: "huge" }, "invalid_body", ["size"]],
      [{ resolution: "8K" }, "invalid_body", ["resolution"]],
      [{ aspect_ratio: "7:5" }, "invalid_body", ["aspect_ratio"]],
    ])("is refused: %j", async ([fields, reason, paths]) => {
      const response = await ask({ ...leastPicture, resolution: undefined, ...fields });
      const { error } = (await response.clone().json()) as {
        error: { message: string; metadata: { issues: { path: string }[] } };
      };
      expect(await errorOf(response)).toEqual({ status: 400, reason });
      expect(error.message).toBe("Invalid request parameters");
      expect(error.metadata.issues.map(({ path }) => path)).toEqual(paths);
    });
  });

  describe("a provider that can do little", () => {
    test("gets what it can't make transcoded, and answers a stream with JSON", async () => {
      const { images } = await imagesOf(await ask({ ...postcard, output_format: "webp", stream: true }));
      expect(images[0]?.mediaType).toBe("image/webp");
      expect(await sharp(images[0]?.bytes).metadata()).toMatchObject({ format: "webp" });
    });

    test.for([
      { n: 2 },
      { output_format: "svg" },
      { background: "transparent" },
      { input_references: [reference("data:image/png;base64,iVBORw0KGgo=")] },
    ])("refuses %j", async (fields) => {
      const refused = await errorOf(await ask({ ...postcard, ...fields }));
      expect(refused).toEqual({ status: 400, reason: "unsupported_parameter" });
    });
  });

  describe("a request is refused", () => {
    test.for<[string, number, string, object]>([
      ["an unknown model", 404, "model_unknown", { model: "local/nobody" }],
      ["a model of the other medium", 404, "model_unknown", { model: "local/flite" }],
      ["no provider left", 404, "no_endpoint_left", { provider: { only: ["nobody"] } }],
      ["too many images", 400, "invalid_body", { n: 11 }],
      ["no prompt", 400, "invalid_body", { prompt: "" }],
      [
        "jpeg without a background",
        400,
        "invalid_body",
        { background: "transparent", output_format: "jpeg" },
      ],
      [
        "a reference that is no image",
        400,
        "reference_refused",
        { input_references: [reference("data:image/png;base64,AAAA")] },
      ],
      [
        "a reference at a private address",
        400,
        "reference_refused",
        { input_references: [reference("http://127.0.0.2:9/a.png")] },
      ],
      [
        "a reference at a metadata address",
        400,
        "reference_refused",
        { input_references: [reference("http://169.254.169.254/a.png")] },
      ],
    ])("for %s: %i %s", async ([, status, reason, fields]) => {
      expect(await errorOf(await ask({ ...leastPicture, ...fields }))).toEqual({ status, reason });
    });

    test("for its key", async () => {
      const as = async (key: string) => errorOf(await ask(leastPicture, { key }));
      expect(await as(flows.in(way).managementKey)).toEqual({
        status: 403,
        reason: "inference_key_required",
      });
      expect(await as("sk-nobody")).toEqual({ status: 401, reason: "key_unknown" });
    });

    test("for a body that is too large, by its Content-Length alone", async () => {
      const { hostname, port } = new URL(flows.in(way).restUrl);
      const socket = connect(Number(port), hostname);
      const head = [
        "POST /api/v1/images HTTP/1.1",
        "Host: media.test",
        `Authorization: Bearer ${flows.in(way).inferenceKey}`,
        "Content-Type: application/json",
        `Content-Length: ${maxBodyBytes + 1}`,
      ];
      socket.write(`${head.join("\r\n")}\r\n\r\n`);
      const [answer] = (await once(socket, "data")) as [Buffer];
      socket.destroy();
      expect(answer.toString("latin1")).toMatch(/^HTTP\/1\.1 413 /);
      expect(answer.toString("latin1")).toContain('"message":"Request payload too large"');
    });

    test("for a body that grows too large while it is read", async () => {
      const headers = {
        authorization: `Bearer ${flows.in(way).inferenceKey}`,
        "content-type": "application/json",
      };
      const sent = httpRequest(`${flows.in(way).restUrl}/images`, { method: "POST", headers, agent: false });
      sent.on("error", () => undefined);
      sent.write(`{"filler":"${"x".repeat(maxBodyBytes)}`);
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      sent.destroy();
      expect(response.statusCode).toBe(413);
    });

    test("and the body of the longest length is taken", async () => {
      const least = JSON.stringify({ ...leastPicture, output_format: "svg", filler: "" });
      const body = least.replace('"filler":""', `"filler":"${"x".repeat(maxBodyBytes - least.length)}"`);
      expect(Buffer.byteLength(body)).toBe(maxBodyBytes);
      await imageOf(await ask(body));
    });
  });

  describe("a stream", () => {
    test("has previews of each picture, then the picture, and ends", async () => {
      const body = { ...leastPicture, n: 2, seed: 5, output_format: "webp" };
      const events = await Array.fromAsync(eventsOf(await ask({ ...body, stream: true })));
      const picture = ["partial_image", "partial_image", "completed"].map(
        (word) => `image_generation.${word}`,
      );
      expect(events.map(({ type }) => type)).toEqual([...picture, ...picture, "[DONE]"]);
      const previews = events.filter(({ type }) => type.endsWith("partial_image"));
      expect(previews.map(({ partial_image_index: index }) => index)).toEqual([0, 1, 2, 3]);
      for (const preview of previews) await decode(bytesOf(preview));
      const completed = events.filter(({ type }) => type.endsWith("completed"));
      for (const { media_type: mediaType, created } of completed) {
        expect(mediaType).toBe("image/webp");
        expect(Math.abs((created ?? 0) - Date.now() / 1000)).toBeLessThan(60);
      }
      expect(completed.map(({ usage }) => usage?.cost)).toEqual([undefined, 0.002]);
      const { images } = await imagesOf(await ask(body));
      expect(completed.map(bytesOf)).toEqual(images.map(({ bytes }) => bytes));
    });

    test("hands on an upstream's previews while it still draws", async () => {
      const rest = Promise.withResolvers<void>();
      flows.in(way).upstream.next({
        kind: "image",
        partials: 2,
        beforeEvent: (index) => (index === 0 ? undefined : rest.promise),
      });
      const events = eventsOf(await ask({ ...upstreamPicture, stream: true, size: "1024x1024" }));
      const first = await events.next();
      expect(first.value).toMatchObject({ partial_image_index: 0 });
      rest.resolve();
      const others = await Array.fromAsync(events);
      expect(others.map(({ type }) => type.split(".").at(-1))).toEqual([
        "partial_image",
        "completed",
        "[DONE]",
      ]);
      const { data } = await decode(bytesOf(others[1]));
      expect(data[0]).toBe(shadeOf(0));
      expect(others[1]?.usage).toMatchObject({ completion_tokens: 1056, cost: expect.closeTo(0.031_69, 5) });
    });

    test("tells what goes wrong amid it, and ends", async () => {
      flows.in(way).upstream.next({ kind: "image", partials: 2, errorAtEvent: 1 });
      const events = await Array.fromAsync(eventsOf(await ask({ ...upstreamPicture, stream: true })));
      expect(events.map(({ type }) => type)).toEqual(["image_generation.partial_image", "error", "[DONE]"]);
      expect(events[1]?.error).toMatchObject({ code: 502, message: "Provider returned error" });
    });
  });

  test("each model that is listed can be looked up, and says what it offers and costs", async () => {
    const flow = flows.in(way);
    const models = await read<{ id: string; endpoints: string }[]>(flow, "/images/models");
    const ids = models.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["local/painter", "local/postcard", upstreamPicture.model]));
    const listed = await read<{ id: string }[]>(flow, "/models?output_modalities=image");
    expect(listed.map(({ id }) => id).sort()).toEqual(ids.toSorted());
    for (const { id, endpoints } of models) {
      const answer = await fetch(new URL(endpoints, flow.restUrl), {
        headers: { authorization: `Bearer ${flow.inferenceKey}` },
      });
      const parameters = { output_format: { type: "enum" }, aspect_ratio: { type: "enum" } };
      const pricing = expect.arrayContaining([expect.objectContaining({ billable: "output_image" })]);
      const endpoint = { pricing, supported_parameters: parameters };
      expect(await answer.json()).toMatchObject({ id, endpoints: [endpoint] });
    }
  });

  describe("usage", () => {
    beforeEach((context) => {
      if (way === "as processes") needKafka(context);
    });

    test(
      "has one record of each request that reached a provider, and none of others",
      async () => {
        const { key, hash } = await createKey(flows.in(way));
        expect((await ask({ ...leastPicture, n: 11 }, { key })).status).toBe(400);
        const drawn = await ask({ ...leastPicture, n: 2, session_id: "s-1", seed: 1 }, { key });
        const paid = await ask({ ...upstreamPicture, quality: "low" }, { key });
        const costs = [(await imagesOf(drawn)).usage.cost, (await imagesOf(paid)).usage.cost];
        expect(costs).toEqual([0.002, expect.closeTo(0.008_17, 5)]);
        const records = await Promise.all([drawn, paid].map((response) => recordOf(flows.in(way), response)));
        const image = { api_type: "image", outcome: "succeeded", streamed: false, cancelled: false };
        expect(records).toMatchObject([
          { ...image, model: "local/painter", usage: costs[0], num_media_completion: 2, session_id: "s-1" },
          { ...image, model: upstreamPicture.model, usage: costs[1], tokens_completion: 272 },
        ]);
        const activity = await read<Activity[]>(flows.in(way), `/activity?api_key_hash=${hash}`);
        const items = activity.map(({ model, requests, usage }) => ({ model, requests, usage }));
        expect(items).toEqual([
          { model: upstreamPicture.model, requests: 1, usage: costs[1] },
          { model: "local/painter", requests: 1, usage: costs[0] },
        ]);
      },
      kafkaTimeoutMs,
    );

    test(
      "of a client that left once the provider had its request is a record that costs what it came to",
      async () => {
        const { key, hash } = await createKey(flows.in(way));
        const { upstream } = flows.in(way);
        const made = Promise.withResolvers<void>();
        upstream.next({ kind: "image", beforeHeaders: () => made.promise });
        const arrived = upstream.received(upstream.requests.length + 1);
        const leaving = new AbortController();
        const left = ask(upstreamPicture, { key, signal: leaving.signal }).catch(
          (thrown: Error) => thrown.name,
        );
        await arrived;
        leaving.abort();
        expect(await left).toBe("AbortError");
        made.resolve();
        const activity = await waitUntil(async () => {
          const items = await read<Activity[]>(flows.in(way), `/activity?api_key_hash=${hash}`);
          return items.length > 0 ? items : undefined;
        }, patience);
        expect(activity).toMatchObject([{ model: upstreamPicture.model, requests: 1 }]);
        expect(activity[0]?.usage).toBeGreaterThan(0);
      },
      kafkaTimeoutMs,
    );
  });

  test("an edit sends the references' own bytes to the upstream, and answers with its image", async () => {
    const [one, two] = [await flatPng(red), await flatPng(blue)];
    const count = flows.in(way).upstream.requests.length;
    const response = await ask({
      ...upstreamPicture,
      size: "1536x1024",
      output_format: "jpeg",
      input_references: [reference(dataUrl(one)), reference(dataUrl(two))],
    });
    expect(await decode(await imageOf(response))).toMatchObject({ width: 1536, height: 1024 });
    const [sent, ...more] = flows.in(way).upstream.requests.slice(count);
    expect(more).toEqual([]);
    expect(sent?.path).toBe("/v1/images/edits");
    expect([one, two].map((png) => sent?.bytes.includes(png))).toEqual([true, true]);
  });
});

test.for(imageWays)("the examples of the document name models that are there, %s", async (way) => {
  const { paths } = (await (await fetch(`${flows.in(way).restUrl}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { requestBody?: object }>>;
  };
  const bodies = Object.values(paths).flatMap((operations) =>
    Object.values(operations).map(({ requestBody }) => requestBody),
  );
  const models = new Set(JSON.stringify(bodies).match(/"model":"[^"]*"/g));
  expect(models).toEqual(new Set(['"model":"local/flite"', '"model":"local/painter"']));
});

test("both ways draw the same picture of the same request", async () => {
  const [one, other] = await Promise.all(
    imageWays.map(async (way) => imageOf(await draw(flows.in(way), { ...leastPicture, seed: 9 }))),
  );
  expect(one?.equals(other ?? Buffer.alloc(0))).toBe(true);
});

function bytesOf(event: ImageEvent | undefined): Buffer {
  return Buffer.from(event?.b64_json ?? "", "base64");
}

/** An item of GET /activity. */
interface Activity {
  readonly model: string;
  readonly requests: number;
  readonly usage: number;
}

/** What GET /generation tells of an answer, once it does. */
function recordOf(flow: ImageFlow, { headers }: Response): Promise<object> {
  return waitUntil(() => read<object>(flow, `/generation?id=${headers.get("x-generation-id")}`), patience);
}
