import { DestinationAdminService } from "../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { issuers } from "../../lib/identity/issuer.ts";
import { ensureKeyFiles, pruneKeySet } from "../../lib/identity/key-files.ts";
import { createRemoteTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { httpUrlVar, readConfig } from "../../lib/runtime/config.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import { type AdminOptions, type AdminOutput, longCallTimeoutMs, resealOutput } from "./action.ts";
import { adminSpec, operatorToken, refused } from "./client.ts";
import { testProvider } from "./provider-test.ts";

/** A command of the operator that does not call the account service. */
export interface OtherAdminAction {
  readonly options: readonly string[];
  /** What may be given without `--`, by the option's name. */
  readonly positionals?: readonly string[];
  readonly usage: string;
  run(options: AdminOptions): Promise<AdminOutput>;
}

/** The commands that do not call the account service, by name. */
export const otherAdminActions: Readonly<Record<string, OtherAdminAction>> = {
  "service-keys create": {
    options: ["directory"],
    usage: "--directory <directory>",
    async run({ directory }) {
      const files = await ensureKeyFiles(directoryOf(directory));
      return { result: [...issuers.map((issuer) => files.keyFile(issuer)), files.jwksFile] };
    },
  },
  "service-keys prune": {
    options: ["directory"],
    usage: "--directory <directory>",
    async run({ directory }) {
      const removed = await pruneKeySet(directoryOf(directory));
      return {
        result: removed.map(({ iss, kid }) => `removed\t${iss}\t${kid}`),
        notes: removed.length === 0 ? ["every public key belongs to a private key of the directory"] : [],
      };
    },
  },
  "destinations reseal": {
    options: ["operator"],
    usage: "",
    async run({ operator }) {
      const spec = { ...adminSpec, DESTINATION_URL: httpUrlVar({ default: undefined }) };
      const config = readConfig(spec);
      const baseUrl = config.DESTINATION_URL ?? `http://localhost:${config.RPC_PORT}`;
      const interceptors = [await operatorToken("destination", operator, config)];
      const transport = createRemoteTransport({ baseUrl, interceptors });
      const client = createRpcClient(DestinationAdminService, transport);
      const sums = client.resealDestinations({}, { timeoutMs: longCallTimeoutMs });
      return resealOutput(await sums.catch(refused("destination service")));
    },
  },
  "provider test": {
    options: ["operator", "medium", "key", "voice"],
    positionals: ["provider"],
    usage: "<provider> [--medium speech|image] [--key <n>] [--voice <voice>]",
    run: testProvider,
  },
};

function directoryOf(directory: string | undefined): string {
  if (directory === undefined) throw new StartError("--directory is required");
  return directory;
}
