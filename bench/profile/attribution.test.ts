import { expect, test } from "vitest";
import { Attribution } from "./attribution.ts";
import { costsOfProfile } from "./inspector.ts";

const root = "/srv/gateway";

function cost(url: string, self: number, functionName = "f", lineNumber = 0, columnNumber = 0) {
  return { frame: { functionName, url, lineNumber, columnNumber }, self };
}

test.for([
  ["file:///srv/gateway/node_modules/undici/lib/api/x.js", "undici"],
  ["file:///srv/gateway/node_modules/@connectrpc/connect/dist/x.js", "@connectrpc/connect"],
  ["file:///srv/gateway/node_modules/a/node_modules/b/x.js", "b"],
  ["file:///srv/gateway/lib/rpc/port/x.ts", "our lib/rpc"],
  ["file:///srv/gateway/services/account/money/x.ts", "our services/account"],
  ["file:///srv/gateway/providers/registry.ts", "our providers"],
  ["file:///srv/gateway/gateway/http/x.ts", "our gateway"],
  ["file:///srv/gateway/gen/media/x_pb.ts", "our gen"],
  ["node:internal/streams/readable", "node internals"],
  ["wasm://wasm/abc", "wasm"],
  ["", "native code called by scripts"],
] as const)("%s belongs to %s", ([url, owner]) => {
  expect(new Attribution(root).byOwner([cost(url, 1)])).toEqual([{ name: owner, self: 1 }]);
});

test("garbage collection has a line of its own, and waiting is no cost", () => {
  const costs = [
    cost("", 2, "(garbage collector)"),
    cost("", 1, "(program)"),
    cost("", 50, "(idle)"),
    cost("", 3, "(root)"),
  ];
  expect(new Attribution(root).byOwner(costs)).toEqual([
    { name: "garbage collection", self: 2 },
    { name: "native code outside of scripts", self: 1 },
  ]);
});

test("costs of one owner, and of one function, are summed up, the largest first", () => {
  const costs = [
    cost("file:///srv/gateway/lib/money/a.ts", 1, "add", 4),
    cost("file:///srv/gateway/node_modules/pg/a.js", 4, "query", 9),
    cost("file:///srv/gateway/node_modules/pg/a.js", 3, "", 20),
    cost("file:///srv/gateway/lib/money/a.ts", 5, "add", 4),
  ];
  const attribution = new Attribution(root);
  expect(attribution.byOwner(costs)).toEqual([
    { name: "pg", self: 7 },
    { name: "our lib/money", self: 6 },
  ]);
  expect(attribution.byFunction(costs)).toEqual([
    { name: "add  lib/money/a.ts:5", self: 6 },
    { name: "query  node_modules/pg/a.js:10", self: 4 },
    { name: "(anonymous)  node_modules/pg/a.js:21", self: 3 },
  ]);
});

test("a CommonJS module, which is known by its path, is told like any other", () => {
  const costs = [cost("/srv/gateway/node_modules/kafkajs/src/a.js", 1, "send", 2)];
  expect(new Attribution(root).byFunction(costs)).toEqual([
    { name: "send  node_modules/kafkajs/src/a.js:3", self: 1 },
  ]);
});

test("what a bundle holds is told by its source map", () => {
  // Column 0 of the first line is line 1 of the package, that of the second is line 1 of our own file.
  const map = JSON.stringify({
    version: 3,
    sources: ["../node_modules/pg/a.js", "../lib/money/a.ts"],
    names: [],
    mappings: "AAAA;ACAA",
  });
  const attribution = new Attribution(root, (url) => (url.endsWith("dist/main.js") ? map : undefined));
  const bundle = "file:///srv/gateway/dist/main.js";
  expect(attribution.byOwner([cost(bundle, 1, "f", 0), cost(bundle, 2, "g", 1)])).toEqual([
    { name: "our lib/money", self: 2 },
    { name: "pg", self: 1 },
  ]);
  const unmapped = new Attribution(root, () => undefined);
  expect(unmapped.byOwner([cost(bundle, 1)])).toEqual([{ name: "our dist", self: 1 }]);
});

test("a sample of a CPU profile lasts until the next one", () => {
  const frame = (functionName: string) => cost("", 0, functionName).frame;
  const nodes = [
    { id: 1, callFrame: frame("a") },
    { id: 2, callFrame: frame("b") },
  ];
  const costs = costsOfProfile({ nodes, samples: [1, 2, 1], timeDeltas: [700, 1000, 3000] });
  expect(costs.map(({ self }) => self)).toEqual([1, 3]);
});
