import { deadLetter } from "./cli/nouns/topic.ts";
import { runCommandLine } from "./cli/program.ts";

await runCommandLine([deadLetter], { before: ["dead-letter", "replay"] });
