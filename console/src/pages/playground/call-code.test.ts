import { expect, test } from "vitest";
import { imagesCode, speechCode } from "./call-code.ts";

const baseUrl = "http://gateway.test/api/v1";

test("a key is in the code only when it was asked for", () => {
  const request = { model: "author/voice", input: "Hello." };
  const without = Object.values(speechCode({ baseUrl, key: undefined }, request));
  expect(without.every((code) => code.includes("MEDIA_KEY"))).toBe(true);
  const having = Object.values(speechCode({ baseUrl, key: "sk-mine" }, request));
  expect(having.every((code) => code.includes("sk-mine") && !code.includes("MEDIA_KEY"))).toBe(true);
});

test("a text stays the text that it is, in a shell's quotes and between the lines that it reads", () => {
  const prompt = "it's $HOME `id` \\n";
  const target = { baseUrl, key: undefined };
  expect(imagesCode(target, { model: "author/painter", prompt }, []).curl).toContain(
    String.raw`"prompt":"it'\''s $HOME ${"`id`"} \\n"`,
  );
  const files = [{ name: "a's.png", mediaType: "image/png" }];
  const { curl } = imagesCode(target, { model: "author/painter", prompt }, files);
  expect(curl).toContain('"prompt": "it\'s \\$HOME \\`id\\` \\\\\\\\n"');
  expect(curl).toContain(String.raw`$(base64 < 'a'\''s.png' | tr -d '\n')`);
});

test("images are asked for whole, and written to files of their format", () => {
  const request = { model: "author/painter", prompt: "A lake", output_format: "webp", stream: true } as const;
  const { curl, javaScript, python } = imagesCode({ baseUrl, key: undefined }, request, []);
  for (const code of [curl, javaScript, python]) expect(code).not.toContain("stream");
  expect(javaScript).toContain(".webp");
  expect(python).toContain(".webp");
});
