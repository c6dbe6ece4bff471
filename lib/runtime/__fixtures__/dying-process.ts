import { createLog } from "../log.ts";

const log = createLog({ name: "dying", level: "info" });
const lines = Number(process.env.LINES);
const say = () => {
  for (let line = 0; line < lines; line++) log.info({ line }, "said");
};
say();
switch (process.env.END) {
  case "exit":
    process.exit(3);
    break;
  case "throw":
    throw new Error("nobody catches this");
  case "reject":
    void Promise.reject(new Error("nobody catches this"));
    break;
  case "return":
    break;
  default:
    // Lives on until it is told to end, and has more to say by then.
    setInterval(() => undefined, 1 << 30);
    process.once("SIGTERM", () => {
      say();
      log.fatal("told to end");
      process.exit(0);
    });
}
