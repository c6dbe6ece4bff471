import { nouns } from "./cli/nouns.ts";
import { runCommandLine } from "./cli/program.ts";

await runCommandLine(nouns);
