import { randomUUID } from "node:crypto";
import type { AttemptContext, ImageCall } from "../contract.ts";
import type { ProviderHttpRequest } from "../provider-http.ts";
import type { ErrorMeanings } from "../upstream/failure.ts";
import { authorizationOf } from "../upstream/own-server.ts";
import { plainPrompt } from "./plain-prompt.ts";
import { sdapiSettings, sentOptions } from "./settings.ts";

/** One call as it goes to the server, which may be asked for other things beside. */
export interface SdapiJob {
  readonly taskId: string;
  readonly draw: Pick<ProviderHttpRequest, "method" | "url" | "headers" | "body">;
  /** A request at another path of the server. */
  ask(method: "GET" | "POST", path: string): Pick<ProviderHttpRequest, "method" | "url" | "headers">;
  readonly failures: { readonly secrets: readonly string[]; readonly meanings: ErrorMeanings };
}

const seeds = 2 ** 32;

/** Classes of what the server raises, by their names in lower case. */
const meanings: ErrorMeanings = new Map([["outofmemoryerror", "overloaded"]]);

/** A call as one request to draw; its prompt is plain. */
export function jobOf(call: ImageCall, { connection }: AttemptContext): SdapiJob {
  const taskId = `task(${randomUUID()})`;
  const headers = authorizationOf(connection.apiKey);
  const url = (path: string) => `${connection.baseUrl}/sdapi/v1/${path}`;
  const [, password = ""] = connection.apiKey.split(":");
  return {
    taskId,
    draw: {
      method: "POST",
      url: url(call.references.length > 0 ? "img2img" : "txt2img"),
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(fieldsOf(call, taskId)),
    },
    ask: (method, path) => ({ method, url: url(path), headers }),
    failures: { secrets: [connection.apiKey, password, call.prompt, plainPrompt(call.prompt)], meanings },
  };
}

function fieldsOf(call: ImageCall, taskId: string): Readonly<Record<string, unknown>> {
  const { parameters, quality, loadedModel } = sdapiSettings(call);
  const { size, seed, references } = call;
  const fields = { ...parameters, ...sentOptions(call), ...quality[call.quality] };
  const negative = fields.negative_prompt;
  const [first, ...others] = references.map(({ bytes }) => Buffer.from(bytes).toString("base64"));
  return {
    ...fields,
    prompt: plainPrompt(call.prompt),
    negative_prompt: typeof negative === "string" ? plainPrompt(negative) : undefined,
    width: size?.width,
    height: size?.height,
    seed: seed === undefined ? -1 : ((seed % seeds) + seeds) % seeds,
    batch_size: call.n,
    n_iter: 1,
    init_images: first === undefined ? undefined : [first],
    extra_images: others.length > 0 ? others : undefined,
    override_settings: loadedModel ? undefined : { sd_model_checkpoint: call.upstreamModel },
    override_settings_restore_afterwards: loadedModel ? undefined : true,
    force_task_id: taskId,
    send_images: true,
    save_images: false,
  };
}
