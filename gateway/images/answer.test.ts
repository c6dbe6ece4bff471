import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerateResponse } from "../../gen/media/image/v1/image_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  imageData,
  imageFinished,
  imagePartial,
  imagePlaces,
  imageStart,
  imageStarted,
  imagesPath,
  imageText,
  leastImagesBody,
  postImages,
  rawImagesRequest,
  startImageGateway,
  wholeImage,
} from "../../test/support/services/gateway-images.ts";
import {
  errorOf,
  type ImageHandlers,
  RawConnection,
  testKeys,
} from "../../test/support/services/gateway-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";

const small = Buffer.from("an image");

/** A handler that yields the frames and then does what the test says. */
function generating(
  frames: readonly GenerateResponse[],
  then: (context: HandlerContext) => Promise<void> = async () => undefined,
): ImageHandlers {
  return {
    async *generate(_request, context) {
      yield* frames;
      await then(context);
    },
  };
}

function neverEnding({ signal }: HandlerContext): Promise<void> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
}

describe.for(imagePlaces)("images from a service %s, buffered", (place) => {
  test("are one JSON object with all of them, their types and the usage", async () => {
    const frames = [
      imageStarted({
        ignoredParameters: ["quality", "provider.options.acme.x"],
        unrecognizedPromptWords: ["gryphon", "正義", "a,b"],
      }),
      ...wholeImage(0, small),
      ...wholeImage(1, Buffer.from("<svg/>"), { mediaType: "image/svg+xml", pieceBytes: 1 }),
      imageFinished({ byok: true, costNanoUsd: 12_345n }),
    ];
    await using both = await startImageGateway(place, generating(frames));
    const response = await postImages(both.gateway);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "application/json",
      "x-generation-id": "gen-img-1",
      "x-ignored-parameters": "quality,provider.options.acme.x",
      "x-unrecognized-prompt-words": "gryphon,%E6%AD%A3%E7%BE%A9,a%2Cb",
      "x-request-id": expect.stringMatching(/^req-/),
    });
    const answer = (await response.json()) as { created: number };
    expect(answer).toEqual({
      created: expect.any(Number),
      data: [
        { b64_json: small.toString("base64"), media_type: "image/png" },
        { b64_json: Buffer.from("<svg/>").toString("base64"), media_type: "image/svg+xml" },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, cost: 0.000012345, is_byok: true },
    });
    expect(Math.abs(answer.created - Date.now() / 1000)).toBeLessThan(60);
  });

  test("arrive whole, however large they are and however their frames are cut", async () => {
    const images = [randomBytes(5_000_001), randomBytes(3_000_000)];
    const frames = [
      imageStarted(),
      ...images.flatMap((image, index) => wholeImage(index, image, { pieceBytes: index ? 77_777 : 1 << 20 })),
      imageFinished(),
    ];
    await using both = await startImageGateway(place, generating(frames));
    const { data } = (await (await postImages(both.gateway)).json()) as { data: { b64_json: string }[] };
    const hashOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
    expect(data.map(({ b64_json }) => hashOf(Buffer.from(b64_json, "base64")))).toEqual(images.map(hashOf));
  });

  test("come without previews and texts, also when the flag is set but the endpoint does not stream", async () => {
    const frames = [
      imageStarted({ streaming: false }),
      imagePartial(0, small),
      imageText("<svg>"),
      ...wholeImage(0, small),
      imageFinished(),
    ];
    await using both = await startImageGateway(place, generating(frames));
    const response = await postImages(both.gateway, { ...leastImagesBody, stream: true });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ data: [{ b64_json: small.toString("base64") }] });
  });

  test("come buffered from an endpoint that streams, when the flag is not set", async () => {
    const frames = [imageStarted({ streaming: true }), ...wholeImage(0, small), imageFinished()];
    await using both = await startImageGateway(place, generating(frames));
    expect((await postImages(both.gateway)).headers.get("content-type")).toBe("application/json");
  });

  test("may still fail with a status of its own until the first of them", async () => {
    const frames = [imageStarted(), imagePartial(0, small)];
    const handlers = generating(frames, async () => {
      throw new DomainError(ErrorReason.CONTENT_POLICY, "no");
    });
    await using both = await startImageGateway(place, handlers);
    const response = await postImages(both.gateway);
    expect(response.headers.get("x-generation-id")).toBe("gen-img-1");
    expect(await errorOf(response)).toEqual({ status: 502, reason: "content_policy" });
  });

  test.for([
    ["an error between them", [imageStarted(), ...wholeImage(0, small)], true],
    ["an error inside of one", [imageStarted(), imageStart(0, 100), imageData(small)], true],
    ["an end without `finished`", [imageStarted(), ...wholeImage(0, small)], false],
    [
      "an image that lacks bytes",
      [imageStarted(), imageStart(0, 9), imageData(small), imageFinished()],
      false,
    ],
    [
      "an image with bytes left",
      [imageStarted(), imageStart(0, 7), imageData(small), imageFinished()],
      false,
    ],
  ] as const)("are cut by %s, and never look whole", async ([, frames, fails]) => {
    const handlers = generating(frames, async () => {
      if (fails) throw new DomainError(ErrorReason.PROVIDER_FAILED, "broke");
    });
    await using both = await startImageGateway(place, handlers);
    const response = await postImages(both.gateway).catch(() => undefined);
    await expect(response?.text() ?? Promise.reject(new Error("cut"))).rejects.toThrow();
    const line = await waitUntil(() => both.gateway.logged.find(({ msg }) => msg === "request"));
    expect(line).toMatchObject({ complete: false, reason: fails ? "provider_failed" : "internal" });
  });

  test.for([
    ["nothing at all", []],
    ["no image", [imageStarted(), imageFinished()]],
    ["an image before its start", wholeImage(0, small)],
    ["an image of no bytes", [imageStarted(), imageStart(0, 0), imageFinished()]],
    ["two starts", [imageStarted(), imageStarted(), ...wholeImage(0, small), imageFinished()]],
  ] as const)("that are %s are a fault of ours", async ([, frames]) => {
    await using both = await startImageGateway(place, generating(frames));
    expect(await errorOf(await postImages(both.gateway))).toEqual({ status: 500, reason: "internal" });
    expect(both.gateway.logged).toContainEqual(expect.objectContaining({ level: "error" }));
  });

  test("are cancelled at the service when the client leaves", async () => {
    const state = { waiting: 0, aborted: 0 };
    const handlers: ImageHandlers = {
      async *generate({ prompt }, context) {
        yield imageStarted();
        if (prompt === "begun") yield* [imageStart(0, 9), imageData(small)];
        state.waiting += 1;
        await neverEnding(context).catch(() => {
          state.aborted += 1;
        });
      },
    };
    await using both = await startImageGateway(place, handlers);
    for (const [done, prompt] of ["early", "begun"].entries()) {
      const client = new RawConnection(both.gateway);
      client.send(rawImagesRequest({ ...leastImagesBody, prompt }));
      await waitUntil(
        () => state.waiting > done && (prompt === "early" || client.received.includes("\r\n\r\n")),
      );
      client[Symbol.dispose]();
      await waitUntil(() => state.aborted > done);
    }
    await waitUntil(() => both.gateway.logged.filter(({ reason }) => reason === "cancelled").length === 2);
    expect(both.gateway.logged).not.toContainEqual(expect.objectContaining({ level: "error" }));
  });

  test("end at the deadline: 524 while nothing has gone out, a cut connection after that", async () => {
    const settings = { imageTimeoutMs: 1000 };
    await using silent = await startImageGateway(place, generating([], neverEnding), settings);
    expect(await errorOf(await postImages(silent.gateway))).toEqual({ status: 524, reason: "timed_out" });
    const frames = [imageStarted(), imageStart(0, 9), imageData(small)];
    await using begun = await startImageGateway(place, generating(frames, neverEnding), settings);
    await expect(postImages(begun.gateway).then((response) => response.text())).rejects.toThrow();
  });
});

describe.for(imagePlaces)("a client that takes nothing of images from a service %s", (place) => {
  const frameBytes = 1 << 20;
  const frameCount = 200;

  /** A service with an image of 200 MiB; counts what it was asked for. */
  function generous() {
    const state = { produced: 0, aborted: false };
    const handlers: ImageHandlers = {
      async *generate(_request, context) {
        context.signal.addEventListener("abort", () => {
          state.aborted = true;
        });
        yield imageStarted();
        yield imageStart(0, frameBytes * frameCount);
        const frame = new Uint8Array(frameBytes);
        for (; state.produced < frameCount; state.produced++) yield imageData(frame);
        yield imageFinished();
      },
    };
    return { state, handlers };
  }

  async function pausedClient(port: number): Promise<IncomingMessage> {
    const headers = { authorization: `Bearer ${testKeys.images}`, "content-type": "application/json" };
    const sent = httpRequest({ port, host: "127.0.0.1", path: imagesPath, method: "POST", headers });
    sent.on("error", () => undefined);
    sent.end(JSON.stringify(leastImagesBody));
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    return response;
  }

  test("makes the service wait, and gets all of it once it reads on", async () => {
    const { state, handlers } = generous();
    await using both = await startImageGateway(place, handlers);
    const response = await pausedClient(both.gateway.port);
    let before = -1;
    await waitUntil(
      () => {
        const settled = state.produced === before;
        before = state.produced;
        return settled && before > 0;
      },
      { intervalMs: 200 },
    );
    expect(state.produced).toBeLessThan(50);
    let bytes = 0;
    for await (const part of response) bytes += (part as Buffer).byteLength;
    expect(bytes).toBeGreaterThan((frameBytes * frameCount * 4) / 3);
    expect(response.complete).toBe(true);
  });

  test("is cut after its time, and the service hears of it", async () => {
    const { state, handlers } = generous();
    await using both = await startImageGateway(place, handlers, { clientStallTimeoutMs: 100 });
    const response = await pausedClient(both.gateway.port);
    await waitUntil(() => state.aborted);
    expect(state.produced).toBeLessThan(frameCount);
    response.resume();
    await waitUntil(() => response.destroyed);
    expect(response.complete).toBe(false);
  });
});
