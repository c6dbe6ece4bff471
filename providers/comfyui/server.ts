import { randomUUID } from "node:crypto";
import { type AttemptContext, ProviderError, type ReferenceImage } from "../contract.ts";
import type {
  OpenWebSocket,
  ProviderHttp,
  ProviderHttpRequest,
  ProviderHttpResponse,
  ProviderWebSocket,
} from "../provider-http.ts";
import { type ErrorMeanings, errorFromTransport, isRecord } from "../upstream/failure.ts";
import { encodeMultipart } from "../upstream/multipart.ts";
import { authorizationOf, sendToOwnServer } from "../upstream/own-server.ts";
import { readBytes, readJsonObject } from "../upstream/send.ts";
import type { Graph } from "./workflow.ts";

const mebibyte = 1024 * 1024;
const maxJsonBytes = 16 * mebibyte;
const maxImageBytes = 64 * mebibyte;
const maxMessageBytes = 16 * mebibyte;
const deleteTimeoutMs = 5_000;
const causeCharacters = 1_000;

const extensions: Readonly<Record<ReferenceImage["mediaType"], string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
};

/** The graph doesn't fit the server. That is its operator's to mend; another endpoint may do. */
const meanings: ErrorMeanings = new Map([
  ["prompt_outputs_failed_validation", "upstream"],
  ["prompt_no_outputs", "upstream"],
  ["invalid_prompt", "upstream"],
  ["missing_node_type", "upstream"],
]);

/** An image that a prompt has made, where the server keeps it. */
export interface StoredImage {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: string;
}

/** One server, as far as one call asks it. Everything throws ProviderError. */
export class ComfyuiServer {
  readonly #http: ProviderHttp;
  readonly #context: AttemptContext;
  readonly #secrets: readonly string[];

  constructor(http: ProviderHttp, context: AttemptContext, prompt: string) {
    const { apiKey } = context.connection;
    const [, password = ""] = apiKey.split(":");
    this.#http = http;
    this.#context = context;
    this.#secrets = [apiKey, password, prompt, JSON.stringify(prompt).slice(1, -1)];
  }

  /** Listens to what the server says to this client. */
  async listen(
    open: OpenWebSocket,
    clientId: string,
    onMessage: (message: string | Uint8Array) => void,
  ): Promise<ProviderWebSocket> {
    const { method: _, ...request } = this.#request("GET", `ws?clientId=${clientId}`);
    try {
      return await open({ ...request, maxMessageBytes, onMessage });
    } catch (thrown) {
      // Its handshake says nothing of why; a plain request does, be it a refused password.
      await this.#json(this.#request("GET", "prompt"));
      throw errorFromTransport(thrown, this.signal);
    }
  }

  /** Stores an image where the server removes it again; resolves with its name for LoadImage. */
  async upload({ bytes, mediaType }: ReferenceImage): Promise<string> {
    const fileName = `${randomUUID()}.${extensions[mediaType]}`;
    const file = { name: "image", fileName, mediaType, bytes };
    const { contentType, body } = encodeMultipart(
      [["type", "temp"]],
      [file],
      randomUUID().replaceAll("-", ""),
    );
    const request = this.#request("POST", "upload/image", { "content-type": contentType });
    const { name, subfolder, type } = await this.#json({ ...request, body });
    if (typeof name !== "string") throw unexpected();
    const folder = typeof subfolder === "string" && subfolder !== "" ? `${subfolder}/` : "";
    return `${folder}${name} [${typeof type === "string" ? type : "temp"}]`;
  }

  /** Has a graph run; resolves with the id that the server knows it by. */
  async queue(prompt: Graph, clientId: string, promptId: string): Promise<string> {
    const request = {
      ...this.#request("POST", "prompt", { "content-type": "application/json" }),
      body: JSON.stringify({ prompt, client_id: clientId, prompt_id: promptId }),
      onSent: () => this.#context.onSent(),
    };
    const { prompt_id: id } = await this.#json(request);
    if (typeof id !== "string") throw unexpected();
    return id;
  }

  /** What came of a prompt; undefined while it waits or runs. */
  async history(promptId: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    const { [promptId]: entry } = await this.#json(
      this.#request("GET", `history/${encodeURIComponent(promptId)}`),
    );
    return isRecord(entry) ? entry : undefined;
  }

  /** The bytes of an image. */
  async view({ filename, subfolder, type }: StoredImage): Promise<Uint8Array> {
    const query = new URLSearchParams({ filename, subfolder, type });
    const response = await this.#send({
      ...this.#request("GET", `view?${query}`),
      maxResponseBytes: maxImageBytes,
    });
    return await readBytes(response, this.signal, maxImageBytes);
  }

  /** Takes a prompt out of the queue, if it still waits there; whatever else runs is left alone. Never throws. */
  async remove(promptId: string): Promise<void> {
    const request = {
      ...this.#request("POST", "queue", { "content-type": "application/json" }),
      body: JSON.stringify({ delete: [promptId] }),
      signal: AbortSignal.timeout(deleteTimeoutMs),
    };
    await this.#http.request(request).then(
      (response) => response.cancel(),
      () => undefined,
    );
  }

  /** A failure that the server told of in words, for the log. */
  failure(kind: ProviderError["kind"], message: string, words: string): ProviderError {
    const shown = this.#secrets
      .filter((secret) => secret !== "")
      .reduce((text, secret) => text.replaceAll(secret, "[removed]"), words);
    return new ProviderError(kind, message, { cause: shown.slice(0, causeCharacters) });
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  #request(method: "GET" | "POST", path: string, headers: Readonly<Record<string, string>> = {}) {
    const { baseUrl, apiKey } = this.#context.connection;
    const auth = authorizationOf(apiKey);
    return { method, url: `${baseUrl}/${path}`, headers: { ...auth, ...headers }, signal: this.signal };
  }

  async #send(request: ProviderHttpRequest): Promise<ProviderHttpResponse> {
    return await sendToOwnServer(this.#http, request, { secrets: this.#secrets, meanings });
  }

  async #json(request: ProviderHttpRequest) {
    return await readJsonObject(await this.#send(request), this.signal, maxJsonBytes);
  }
}

function unexpected(): ProviderError {
  return new ProviderError("bad_answer", "The upstream's answer is not what was asked for.", { status: 200 });
}
