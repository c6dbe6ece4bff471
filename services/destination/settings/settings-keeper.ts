import type { JsonObject } from "@bufbuild/protobuf";
import { maxConfigBytes } from "../../../lib/limits/destination-limits.ts";
import type { Issue } from "../../../lib/runtime/domain-error.ts";
import { SealError, type Sealer } from "../../../lib/secrets/seal.ts";
import type { Receivers } from "../delivery/receivers.ts";
import type { DestinationRow } from "../store.ts";
import type { DestinationType } from "../types/contract.ts";

/** The types of destinations by slug. */
export type DestinationTypes = ReadonlyMap<string, DestinationType<unknown>>;

interface SettingsKeeperOptions {
  readonly types: DestinationTypes;
  readonly sealer: Sealer;
  readonly receivers: Pick<Receivers, "findForbidden">;
}

type Bound = Pick<DestinationRow, "id" | "account_id">;

/** Checks the settings of destinations, seals them for the store, each bound to its account and record, and opens them. */
export class SettingsKeeper {
  readonly #options: SettingsKeeperOptions;

  constructor(options: SettingsKeeperOptions) {
    this.#options = options;
  }

  type(slug: string): DestinationType<unknown> | undefined {
    return this.#options.types.get(slug);
  }

  /** Whole settings as they are to be stored; undefined when something is wrong, which then stands in `issues`. */
  check(type: DestinationType<unknown>, given: JsonObject, issues: Issue[]): JsonObject | undefined {
    const read = type.readConfig(given);
    if ("issues" in read) {
      const known = new Set(issues.map(({ path }) => path));
      issues.push(...read.issues.filter(({ path }) => !known.has(path)));
      return undefined;
    }
    const text = JSON.stringify(read.config);
    if (Buffer.byteLength(text) > maxConfigBytes) {
      issues.push({ path: "config", message: `must not be longer than ${maxConfigBytes} bytes as JSON` });
      return undefined;
    }
    const config = JSON.parse(text) as JsonObject;
    const forbidden = this.#options.receivers.findForbidden(type.urlsOf(read.config));
    if (forbidden === undefined) return config;
    const path = ["config", ...settingOf(forbidden, config)].join(".");
    issues.push({ path, message: "is an address that may not be called" });
    return undefined;
  }

  /** Settings as they stand in the store. */
  seal(config: JsonObject, bound: Bound): Buffer {
    return this.#options.sealer.seal(JSON.stringify(config), associated(bound));
  }

  /** Settings out of the store; undefined when they can't be opened, being sealed with a key that is gone. */
  open(row: Bound & Pick<DestinationRow, "sealed">): JsonObject | undefined {
    if (row.sealed === null) return undefined;
    try {
      return JSON.parse(this.#options.sealer.open(row.sealed, associated(row))) as JsonObject;
    } catch (thrown) {
      if (thrown instanceof SealError) return undefined;
      throw thrown;
    }
  }

  /** Settings out of the store sealed with the newest key, unless they are already or can't be opened. */
  reseal(row: Bound & Pick<DestinationRow, "sealed">): Buffer | "current" | "unreadable" {
    const config = this.open(row);
    if (row.sealed === null || config === undefined) return "unreadable";
    const { sealer } = this.#options;
    return sealer.keyIdOf(row.sealed) === sealer.keyId ? "current" : this.seal(config, row);
  }
}

function associated({ account_id, id }: Bound): readonly string[] {
  return ["destination", account_id, id];
}

/** The name of the setting that an address was made from, where one is known. */
function settingOf(url: URL, config: JsonObject): string[] {
  const setting = Object.entries(config).find(
    ([, value]) => typeof value === "string" && URL.parse(value)?.host === url.host,
  );
  return setting === undefined ? [] : [setting[0]];
}
