/**
 * The yardstick: a Node proxy that pipes a speech answer from the upstream to the client and does nothing else, no
 * keys, no validation, no RPC. `node bench/plain-proxy.ts --upstream http://127.0.0.1:9101`; prints its base URL.
 */
import { Agent, createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { upstream: { type: "string", default: "" } } });
const agent = new Agent({ keepAlive: true, maxSockets: 1024 });

const server = createServer({ noDelay: true }, (request, response) => {
  const upstream = httpRequest(`${values.upstream}${request.url}`, {
    method: "POST",
    agent,
    headers: { "content-type": "application/json", authorization: "Bearer test-key" },
  });
  upstream.on("response", (answer) => {
    response.writeHead(answer.statusCode ?? 502, { "content-type": "audio/pcm" });
    pipeline(answer, response, () => undefined);
  });
  upstream.on("error", () => response.destroy());
  request.pipe(upstream);
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.once("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
  agent.destroy();
});
