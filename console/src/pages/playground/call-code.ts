import type { ImagesRequest } from "./image-run.ts";
import type { SpeechRequest } from "./speech-run.ts";

/** Where a call goes, and with which key. */
export interface CallTarget {
  /** Where the interface lies, up to `/api/v1`. */
  readonly baseUrl: string;
  /** Undefined: the one that the variable MEDIA_KEY has. */
  readonly key: string | undefined;
}

/** One call in several languages. */
export interface CallCode {
  readonly curl: string;
  readonly javaScript: string;
  readonly python: string;
}

/** An image to start from, which the code reads from a file of this name. */
export interface ReferenceFile {
  readonly name: string;
  readonly mediaType: string;
}

const json = (value: unknown) => JSON.stringify(value);

/** The code that speaks. */
export function speechCode(target: CallTarget, request: SpeechRequest): CallCode {
  const { model, voice, input, response_format = "mp3", speed } = request;
  const file = `speech.${response_format}`;
  return {
    curl: `${curlHead(target, "/audio/speech")} \\\n  -d ${shellQuoted(json(request))} \\\n  -o ${file}`,
    javaScript: `import { writeFile } from "node:fs/promises";
${javaScriptClient(target)}
const speech = await client.audio.speech.create(${JSON.stringify(request, null, 2)});
await writeFile(${json(file)}, speech.body);`,
    python: `${pythonClient(target)}
with client.audio.speech.with_streaming_response.create(
    model=${json(model)},
    voice=${voice === undefined ? "None" : json(voice)},
    input=${json(input)},
    response_format=${json(response_format)},${speed === undefined ? "" : `\n    speed=${speed},`}
) as speech:
    speech.stream_to_file(${json(file)})`,
  };
}

/** The code that draws; it asks for no events, and reads what it starts from out of files. */
export function imagesCode(
  target: CallTarget,
  { stream: _, input_references: __, ...request }: ImagesRequest,
  references: readonly ReferenceFile[],
): CallCode {
  const { output_format: format = "png" } = request;
  const fromJavaScript = references.map(
    ({ name, mediaType }) => `\`data:${mediaType};base64,\${await readFile(${json(name)}, "base64")}\``,
  );
  const fromPython = references.map(
    ({ name, mediaType }) =>
      `"data:${mediaType};base64," + base64.b64encode(open(${json(name)}, "rb").read()).decode()`,
  );
  return {
    curl: imagesCurl(target, request, references),
    javaScript: `import { ${references.length > 0 ? "readFile, " : ""}writeFile } from "node:fs/promises";
${javaScriptClient(target)}
const body = ${bodyText(request, fromJavaScript)};
const { data } = await client.post("/images", { body });
for (const [index, { b64_json }] of data.entries()) {
  await writeFile(\`image-\${index + 1}.${format}\`, b64_json, "base64");
}`,
    python: `import base64

import httpx
${pythonClient(target)}
body = ${bodyText(request, fromPython)}
answer = client.post("/images", cast_to=httpx.Response, body=body).json()
for index, image in enumerate(answer["data"], 1):
    with open(f"image-{index}.${format}", "wb") as file:
        file.write(base64.b64decode(image["b64_json"]))`,
  };
}

function imagesCurl(target: CallTarget, request: object, references: readonly ReferenceFile[]): string {
  const head = curlHead(target, "/images");
  const output = " \\\n  -o images.json";
  if (references.length === 0) return `${head} \\\n  -d ${shellQuoted(json(request))}${output}`;
  // What a shell replaces in a text of this kind is kept from it, but for the files.
  const escaped = JSON.stringify(request, null, 2).replace(/[\\$`]/g, "\\$&");
  const files = references.map(
    ({ name, mediaType }) => `"data:${mediaType};base64,$(base64 < ${shellQuoted(name)} | tr -d '\\n')"`,
  );
  return `${head}${output} \\\n  -d @- <<EOF\n${withReferences(escaped, files)}\nEOF`;
}

function bodyText(request: object, references: readonly string[]): string {
  const text = JSON.stringify(request, null, 2);
  return references.length === 0 ? text : withReferences(text, references);
}

/** Puts references, whose addresses are code, into the text of an object. */
function withReferences(text: string, addresses: readonly string[]): string {
  const lines = addresses.map((url) => `    { "type": "image_url", "image_url": { "url": ${url} } }`);
  return `${text.slice(0, -2)},\n  "input_references": [\n${lines.join(",\n")}\n  ]\n}`;
}

function curlHead({ baseUrl, key }: CallTarget, path: string): string {
  const authorization =
    key === undefined ? '"Authorization: Bearer $MEDIA_KEY"' : shellQuoted(`Authorization: Bearer ${key}`);
  return `curl -N ${shellQuoted(baseUrl + path)} \\
  -H ${authorization} \\
  -H 'Content-Type: application/json'`;
}

/** A text in single quotes, as a shell reads it. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function javaScriptClient({ baseUrl, key }: CallTarget): string {
  return `import OpenAI from "openai";

const client = new OpenAI({
  baseURL: ${json(baseUrl)},
  apiKey: ${key === undefined ? "process.env.MEDIA_KEY" : json(key)},
});`;
}

function pythonClient({ baseUrl, key }: CallTarget): string {
  return `${key === undefined ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(
    base_url=${json(baseUrl)},
    api_key=${key === undefined ? 'os.environ["MEDIA_KEY"]' : json(key)},
)`;
}
