/** What a snippet is made for. */
export interface SnippetTarget {
  /** Where the interface lies, up to `/api/v1`. */
  readonly baseUrl: string;
  readonly key: string;
  readonly model: string;
  readonly voice: string;
}

const words = "Hello from my own code.";

/** A text in single quotes, as a shell reads it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The same request from a shell. */
export function curlSnippet({ baseUrl, key, model, voice }: SnippetTarget): string {
  const body = JSON.stringify({ model, voice, input: words });
  return `curl -N ${quoted(`${baseUrl}/audio/speech`)} \\
  -H ${quoted(`Authorization: Bearer ${key}`)} \\
  -H 'Content-Type: application/json' \\
  -d ${quoted(body)} \\
  -o hello.mp3`;
}

/** By OpenAI's SDK for JavaScript. */
export function javaScriptSnippet({ baseUrl, key, model, voice }: SnippetTarget): string {
  const text = JSON.stringify;
  return `import { writeFile } from "node:fs/promises";
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: ${text(baseUrl)},
  apiKey: ${text(key)},
});
const speech = await client.audio.speech.create({
  model: ${text(model)},
  voice: ${text(voice)},
  input: ${text(words)},
});
await writeFile("hello.mp3", speech.body);`;
}

/** By OpenAI's SDK for Python. */
export function pythonSnippet({ baseUrl, key, model, voice }: SnippetTarget): string {
  const text = JSON.stringify;
  return `from openai import OpenAI

client = OpenAI(
    base_url=${text(baseUrl)},
    api_key=${text(key)},
)
with client.audio.speech.with_streaming_response.create(
    model=${text(model)},
    voice=${text(voice)},
    input=${text(words)},
) as speech:
    speech.stream_to_file("hello.mp3")`;
}
