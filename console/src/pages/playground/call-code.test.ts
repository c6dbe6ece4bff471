import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { imagesCode, speechCode } from "./call-code.ts";

const baseUrl = "http://127.0.0.1:1/api/v1";
const words = 'It\'s 5 $HOME `id` \\n "quoted"\nand 🎈 EOF';
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "call-code-"));
});

afterAll(() => rm(folder, { recursive: true }));

/** What a shell gives a program called curl. */
async function sentBy(code: string): Promise<{ args: string[]; body: string }> {
  const program = `curl() { for each in "$@"; do printf '%s\\0' "$each"; done; case "$*" in *"-d @-"*) cat;; esac; }`;
  const env = { PATH: process.env.PATH, MEDIA_KEY: "sk-of-the-environment" };
  const { stdout } = await promisify(execFile)("bash", ["-c", `${program}\n${code}`], { cwd: folder, env });
  const args = stdout.split("\0");
  const rest = args.pop() ?? "";
  const given = args[args.indexOf("-d") + 1] ?? "";
  return { args, body: given === "@-" ? rest : given };
}

test("a shell sends the very request, with the key of the environment", async () => {
  const request = { model: "local/flite", voice: "slt", input: words, speed: 1.5 };
  const { curl } = speechCode({ baseUrl, key: undefined }, request);
  const { args, body } = await sentBy(curl);
  expect(JSON.parse(body)).toEqual(request);
  expect(args).toContain("Authorization: Bearer sk-of-the-environment");
  expect(args).toContain(`${baseUrl}/audio/speech`);
});

test("a shell reads references out of files of whatever name", async () => {
  const name = "a $HOME it's `x`.png";
  await writeFile(join(folder, name), "bytes");
  const request = { model: "local/painter", prompt: words, stream: true };
  const { curl } = imagesCode({ baseUrl, key: undefined }, request, [{ name, mediaType: "image/png" }]);
  const { body } = await sentBy(curl);
  expect(JSON.parse(body)).toEqual({
    model: "local/painter",
    prompt: words,
    input_references: [{ type: "image_url", image_url: { url: `data:image/png;base64,${btoa("bytes")}` } }],
  });
});

test("a key is in the code only when it was asked for", () => {
  const request = { model: "local/flite", input: words };
  const without = Object.values(speechCode({ baseUrl, key: undefined }, request));
  expect(without.every((code) => code.includes("MEDIA_KEY"))).toBe(true);
  const having = Object.values(speechCode({ baseUrl, key: "sk-mine" }, request));
  expect(having.every((code) => code.includes("sk-mine") && !code.includes("MEDIA_KEY"))).toBe(true);
});

test("Python reads it", async () => {
  const request = { model: "local/painter", prompt: words, n: 2 };
  const target = { baseUrl, key: undefined };
  const file = { name: 'a "b".png', mediaType: "image/png" };
  for (const { python } of [
    speechCode(target, { model: "local/flite", input: words, speed: 2 }),
    imagesCode(target, request, [file]),
  ]) {
    await promisify(execFile)("python3", ["-c", "import ast, sys; ast.parse(sys.argv[1])", python]);
  }
});
