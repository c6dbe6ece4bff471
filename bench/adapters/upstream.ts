/** One stand-in as a process of its own: `node bench/adapters/upstream.ts <kind>`; prints its base URL. */
import { adapterKinds } from "./kinds.ts";

const kind = adapterKinds.find(({ name }) => name === process.argv[2]);
if (kind === undefined) throw new Error("no such kind");
const upstream = await kind.start();
process.stdout.write(`${upstream.baseUrl}\n`);
process.once("SIGTERM", () => void upstream.close());
