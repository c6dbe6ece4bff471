import { timestampDate } from "@bufbuild/protobuf/wkt";
import { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { ProviderKeyService } from "../../../gen/media/account/v1/provider_key_service_pb.ts";
import { issuers } from "../../../lib/identity/issuer.ts";
import { ensureKeyFiles, pruneKeySet } from "../../../lib/identity/key-files.ts";
import { accountOption, longCallTimeoutMs, type Noun } from "../command.ts";
import type { Output } from "../output.ts";

/** Accounts' own keys at providers. */
export const providerKey: Noun = {
  name: "provider-key",
  alias: "provider-keys",
  summary: "accounts' own keys at providers",
  verbs: [
    {
      name: "list",
      summary: "an account's own keys, masked",
      options: [accountOption],
      async run(input, cli) {
        const { options } = await cli.seenBy(input.text("account"));
        const { providerKeys } = await (await cli.client(ProviderKeyService, "account")).listProviderKeys(
          {},
          options,
        );
        const rows = providerKeys.map(({ id, providerSlug, name, label, disabled, createdAt }) => ({
          id,
          provider: providerSlug,
          name,
          label,
          state: disabled ? "disabled" : "works",
          created_at: createdAt && timestampDate(createdAt),
        }));
        return { columns: ["id", "provider", "name", "label", "state", "created_at"], rows };
      },
    },
    {
      name: "reseal",
      summary: "seal all of them again with the first of MASTER_KEYS",
      details: "When destination reseal has run as well, the other master keys may go.",
      async run(_, cli) {
        const client = await cli.client(AccountAdminService, "account", longCallTimeoutMs);
        return resealOutput(await client.resealProviderKeys({}));
      },
    },
  ],
};

const directory = { name: "directory", value: "directory", help: "where the keys are" };

/** The keys that processes know each other by. */
export const serviceKey: Noun = {
  name: "service-key",
  alias: "service-keys",
  summary: "the keys that processes know each other by",
  verbs: [
    {
      name: "create",
      summary: "make what is missing in a directory of keys",
      options: [directory],
      details: `Writes a private key for each process (SERVICE_KEY_FILE), the operator's (ADMIN_KEY_FILE) and the set of public
ones (SERVICE_JWKS_FILE). What is there already stays as it is, so a private key that was moved away is replaced and its
public half stays beside the new one.`,
      async run(input) {
        const files = await ensureKeyFiles(input.required("directory"));
        const rows = [
          ...issuers.map((issuer) => ({ of: issuer, file: files.keyFile(issuer) })),
          { of: "all, public", file: files.jwksFile },
        ];
        return { columns: ["of", "file"], rows };
      },
    },
    {
      name: "prune",
      summary: "take public keys away that no private key of the directory belongs to",
      options: [directory],
      async run(input) {
        const removed = await pruneKeySet(input.required("directory"));
        return {
          columns: ["removed_of", "key"],
          rows: removed.map(({ iss, kid }) => ({ removed_of: iss, key: kid })),
          notes: removed.length === 0 ? ["every public key belongs to a private key of the directory"] : [],
        };
      },
    },
  ],
};

/** What came of sealing things again, in counts. */
export function resealOutput(sums: {
  readonly resealed: bigint;
  readonly current: bigint;
  readonly unreadable: bigint;
}): Output {
  return {
    fields: {
      sealed_again: sums.resealed,
      sealed_with_the_first_key_before: sums.current,
      unreadable: sums.unreadable,
    },
    notes: sums.unreadable === 0n ? [] : ["those that can't be read need a master key that is gone"],
  };
}
