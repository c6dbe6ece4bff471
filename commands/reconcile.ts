import { books } from "./cli/nouns/books.ts";
import { runCommandLine } from "./cli/program.ts";

await runCommandLine([books], { before: ["books", "reconcile"] });
