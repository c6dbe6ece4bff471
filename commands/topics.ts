import { topic } from "./cli/nouns/topic.ts";
import { runCommandLine } from "./cli/program.ts";

await runCommandLine([topic], { before: ["topic", "create"] });
