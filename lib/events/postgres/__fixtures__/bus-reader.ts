/**
 * A reader of a group in a process of its own. Arguments: URL, topic, group. Each thing that
 * happens is a line of JSON. A message `hang` is handled until its signal fires, and then counts as handled.
 */
import { silentLog } from "../../../runtime/log.ts";
import { createPostgresBus } from "../postgres-bus.ts";

const [url = "", topic = "", group = ""] = process.argv.slice(2);
const say = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);

const bus = createPostgresBus({ url, log: silentLog });
const consumer = bus.consume({
  topic,
  group,
  maxBatchMessages: 10,
  async handle(batch, signal) {
    const texts = batch.map(({ value }) => Buffer.from(value).toString());
    say({ texts });
    if (!texts.includes("hang")) return;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    say({ aborted: texts });
  },
});
process.on("SIGTERM", async () => {
  await consumer.leave();
  await bus.close();
  say({ left: true });
});
