import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { formatUsd } from "../../lib/money/nano-usd.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import type { AdminClient } from "./client.ts";

/** What stands behind the command's name, such as `--account <id>`. */
export type AdminOptions = Readonly<Record<string, string | undefined>>;

/** What a command prints: `result` to stdout, `notes` to stderr. */
export interface AdminOutput {
  readonly result: readonly string[];
  readonly notes?: readonly string[];
}

/** A command of the operator. */
export interface AdminAction {
  readonly options: readonly string[];
  /** What may be given without `--`, by the option's name; the first ones may be left out. */
  readonly positionals?: readonly string[];
  readonly usage: string;
  run(client: AdminClient["rpc"], options: AdminOptions): Promise<AdminOutput>;
}

/** The account named, or else the only one there is. */
export async function accountOf(client: AdminClient["rpc"], named: string | undefined): Promise<string> {
  if (named !== undefined) return named;
  const { accounts } = await client.listAccounts({ pageSize: 2 });
  const [only, second] = accounts;
  if (only === undefined) throw new StartError("there is no account yet; make one with account create");
  if (second !== undefined) throw new StartError("there are several accounts; name one with --account <id>");
  return only.id;
}

/** An instant as people read it; empty for none. */
export function when(instant: Timestamp | undefined): string {
  return instant === undefined ? "" : timestampDate(instant).toISOString();
}

/** An amount of nano-USD as people read it. */
export function usd(nanoUsd: bigint): string {
  return `${formatUsd(nanoUsd)} USD`;
}

/** The whole number that an option says. Throws StartError when it is none from 1 to `max`. */
export function countOf(option: string, text: string, max: number): number {
  const count = Number(text);
  if (!/^\d{1,9}$/.test(text) || count < 1 || count > max) {
    throw new StartError(`--${option} must be a whole number from 1 to ${max}`);
  }
  return count;
}

/** How long a call may take that goes through everything, milliseconds. */
export const longCallTimeoutMs = 600_000;

/** What came of sealing things again, in counts. */
export function resealOutput(sums: {
  readonly resealed: bigint;
  readonly current: bigint;
  readonly unreadable: bigint;
}): AdminOutput {
  return {
    result: [
      `sealed again\t${sums.resealed}`,
      `sealed with the first key before\t${sums.current}`,
      `can't be read\t${sums.unreadable}`,
    ],
    notes: sums.unreadable === 0n ? [] : ["those that can't be read need a master key that is gone"],
  };
}
