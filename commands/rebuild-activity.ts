import { activity } from "./cli/nouns/activity.ts";
import { runCommandLine } from "./cli/program.ts";

await runCommandLine([activity], { before: ["activity", "rebuild"] });
