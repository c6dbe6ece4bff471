import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Shorter files gain nothing. */
const leastBytes = 512;

/** Writes each file's compressed forms beside it, so that the gateway compresses nothing while it serves. */
const compressed: Plugin = {
  name: "compressed",
  apply: "build",
  async writeBundle({ dir = "" }, bundle) {
    for (const name of Object.keys(bundle)) {
      const bytes = await readFile(join(dir, name));
      if (bytes.length < leastBytes) continue;
      const best = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } };
      await writeFile(join(dir, `${name}.br`), await promisify(brotliCompress)(bytes, best));
      await writeFile(join(dir, `${name}.gz`), await promisify(gzip)(bytes, { level: 9 }));
    }
  },
};

export default defineConfig({
  root: import.meta.dirname,
  // All addresses are relative, so that the page also works behind a path of somebody's proxy.
  base: "./",
  plugins: [compressed],
  build: {
    assetsDir: "console",
    // The policy of the page lets nothing be loaded that is not a file of the gateway.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // light-dark() and nesting in style sheets stay as they are.
    target: ["chrome123", "edge123", "firefox121", "safari17.5"],
    rolldownOptions: { output: { chunkFileNames: "console/[name]-[hash].js" } },
  },
  // `npx vite console` shows changes at once; the gateway answers the calls.
  server: { proxy: { "/api": "http://localhost:8080", "/docs": "http://localhost:8080" } },
});
