import { type Kysely, sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../test/support/postgres/database.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createLog, silentLog } from "../runtime/log.ts";
import { connectDatabase } from "./connect.ts";
import { listenForNotifications } from "./notifications.ts";

let database: TestDatabase;
let db: Kysely<unknown>;

beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase({ url: database.url, schema: "public", log: silentLog });
});

afterAll(async () => {
  await db.destroy();
  await database.drop();
});

const notify = (payload: string, channel = "news") =>
  sql`SELECT pg_notify(${channel}, ${payload})`.execute(db);

/** A subscription with what it heard. */
function listen(url = database.url, log = silentLog) {
  const heard: string[] = [];
  let begun = 0;
  const { close } = listenForNotifications({
    url,
    channel: "news",
    log,
    onNotification: (payload) => heard.push(payload),
    onListening: () => {
      begun += 1;
    },
  });
  return { heard, close, begun: () => begun };
}

test("what is notified on the channel is heard, in its order, until the end", async () => {
  const first = listen();
  const second = listen();
  await waitUntil(() => first.begun() === 1 && second.begun() === 1);
  for (const payload of ["1", "", "ü 3"]) await notify(payload);
  await notify("elsewhere", "other");
  await waitUntil(() => first.heard.length === 3 && second.heard.length === 3);
  await second.close();
  await notify("4");
  await waitUntil(() => first.heard.length === 4);
  expect(first.heard).toEqual(["1", "", "ü 3", "4"]);
  expect(second.heard).toEqual(["1", "", "ü 3"]);
  await first.close();
});

test("a connection that is cut is made again, which is reported", async () => {
  const lines: { level: string; msg: string }[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const log = createLog({ name: "test", level: "info", destination: { write } });
  const { heard, close, begun } = listen(database.url, log);
  await waitUntil(() => begun() === 1);
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'media-gateway news' AND datname = current_database()`.execute(db);
  await waitUntil(() => begun() === 2);
  await notify("again");
  await waitUntil(() => heard.length === 1);
  await close();
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    ["warn", "database notifications are away"],
    ["info", "database notifications are back"],
  ]);
});

test("a database that can't be reached is tried until the end", async () => {
  const { close, begun } = listen("postgres://nobody@127.0.0.1:1/none");
  await close();
  expect(begun()).toBe(0);
});

test("a channel that would need quoting is refused", () => {
  const options = {
    url: database.url,
    log: silentLog,
    onNotification: () => undefined,
    onListening: () => undefined,
  };
  expect(() => listenForNotifications({ ...options, channel: "a b" })).toThrow("a b");
});
