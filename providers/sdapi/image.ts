/**
 * "txt2img" and "img2img" of the web UI of Stable Diffusion, as AUTOMATIC1111, Forge, SD.Next and stable-diffusion.cpp speak
 * it: one JSON text with all images when they are done.
 *
 * - Progress and interrupt of such a server are the whole server's. They are asked only where the endpoint declares it
 *   exclusive (exclusive-job.ts); otherwise there are no previews, and leaving closes the connection, no more.
 * - Every call has a task id of ours, which newer servers tell in their progress: another's preview is never handed on.
 * - Prompts lose their embedded parameters first (plain-prompt.ts).
 */
import type { ImageAdapter } from "../contract.ts";
import type { ProviderHttp, ProviderHttpRequest, ProviderHttpResponse } from "../provider-http.ts";
import { sendToOwnServer } from "../upstream/own-server.ts";
import { readJsonObject } from "../upstream/send.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { handedOut, imagesOf } from "./drawn-images.ts";
import { runExclusively } from "./exclusive-job.ts";
import { jobOf } from "./job.ts";
import { JobLine } from "./job-line.ts";
import { sdapiSettings } from "./settings.ts";

/** What the adapter is made from. */
export interface SdapiOptions {
  readonly http: ProviderHttp;
  /** Between two looks at the progress, milliseconds. */
  readonly previewPauseMs?: number;
  /** How long an interrupted job may take to end before its connection is closed, milliseconds. */
  readonly interruptGraceMs?: number;
}

type Bounds = Pick<ProviderHttpRequest, "signal" | "onSent">;

const maxResponseBytes = 96 * 1024 * 1024;

/** Makes the adapter; a server that is exclusive has one line of waiting calls in it. */
export function createSdapiAdapter(options: SdapiOptions): ImageAdapter {
  const { http, previewPauseMs = 500, interruptGraceMs = 15_000 } = options;
  const line = new JobLine();
  return {
    async generate(call, context) {
      const { signal, onSent } = context;
      const job = jobOf(call, context);
      const { exclusive, maxWaiting } = sdapiSettings(call);
      const ask = (bounds: Bounds) =>
        sendToOwnServer(http, { ...job.draw, ...bounds, maxResponseBytes }, job.failures);
      const read = async (response: ProviderHttpResponse, bounds: Bounds) =>
        imagesOf(await readJsonObject(response, bounds.signal, maxResponseBytes));
      if (!exclusive) {
        const response = await ask({ signal, onSent });
        const output = handedOut(() => read(response, { signal }), call);
        return { output: untilLeft(output, response), report: () => undefined };
      }
      const release = await line.enter(maxWaiting, signal);
      const draw = async (bounds: Bounds) => await read(await ask(bounds), bounds);
      const pace = { previewPauseMs, interruptGraceMs };
      const output = await runExclusively({ http, job, call, context, draw, release, ...pace });
      return { output, report: () => undefined };
    },
  };
}
