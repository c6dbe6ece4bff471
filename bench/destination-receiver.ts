/**
 * The receivers of bench/destination.ts, as a process of their own: paths that begin with `/dead` never answer, all
 * others take what comes. A message from the parent is answered with the delays since the last one, milliseconds from
 * the end of an event to its arrival.
 */
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import type { PlainBody } from "../test/support/services/destination-type.ts";

listen();

function listen(): void {
  let delaysMs: number[] = [];
  const server = createServer(async (request, response) => {
    if (request.url?.startsWith("/dead")) return;
    const { events } = (await json(request)) as PlainBody;
    const nowMs = Date.now();
    for (const { endedAt } of events) delaysMs.push(nowMs - Date.parse(String(endedAt)));
    response.writeHead(200).end();
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    process.send?.(typeof address === "object" ? address?.port : 0);
  });
  process.on("message", () => {
    process.send?.(delaysMs);
    delaysMs = [];
  });
  process.on("disconnect", () => process.exit(0));
}
