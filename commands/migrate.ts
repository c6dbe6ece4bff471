import { database } from "./cli/nouns/database.ts";
import { runCommandLine } from "./cli/program.ts";

await runCommandLine([database], { before: ["database", "migrate"] });
