/**
 * Paints 4K pictures in a process of its own; prints a digest of each and the most memory that the process had. With an
 * argument only small ones.
 */
import { createHash } from "node:crypto";
import { createLocalProvider } from "../engine.ts";

const isSmall = process.argv[2] !== undefined;
const side = isSmall ? 256 : 4_096;
// What takes memory is the pixels, whatever they show: the large ones are of something that is painted quickly.
const prompt = `a castle by a lake in the mountains ${isSmall ? "under the milky way" : "at night"}`;
const provider = createLocalProvider({ imageThreads: 2 });
const context = {
  signal: new AbortController().signal,
  connection: { baseUrl: "", apiKey: "" },
  onSent: () => undefined,
};
const digests: string[] = [];
const formats = ["png", "jpeg", "webp"] as const;
await Promise.all(
  formats.map(async (format, index) => {
    const { output } = await provider.image.generate(
      {
        upstreamModel: "painter",
        prompt,
        n: 1,
        size: { width: side, height: side },
        quality: "high",
        background: "auto",
        format,
        compression: undefined,
        seed: 7,
        references: [],
        stream: false,
        options: {},
        settings: {},
      },
      context,
    );
    for await (const item of output) {
      if (item.kind === "image") digests[index] = createHash("sha256").update(item.bytes).digest("hex");
    }
  }),
);
await provider.close();
process.stdout.write(`${JSON.stringify({ digests, peakMib: process.resourceUsage().maxRSS / 1024 })}\n`);
