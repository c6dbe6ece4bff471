/** How something that was looked at is. */
export type Health =
  /** In order. */
  | "ok"
  /** It works, but somebody should look. */
  | "look"
  | "wrong"
  /** Nothing says where it is, or it is not used here. */
  | "not checked";

/** What was found of one thing. */
export interface Finding {
  readonly what: string;
  readonly health: Health;
  readonly found: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** Looks at something; what it throws is a finding as well. */
export type Check = () => Promise<Finding | readonly Finding[]>;

/** The environment that is looked at. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  /** Whether this is standalone, which makes its keys and its database itself. */
  readonly isStandalone: boolean;
  readonly dataDir: string;
}

/** Something that can't be looked at for want of a variable. */
export function notChecked(what: string, variable: string): Finding {
  return {
    what,
    health: "not checked",
    found: `${variable} is not set`,
    remedy: `set ${variable} to have it checked`,
  };
}

/** Why something does not answer, in a few words without addresses or secrets. */
export function reasonOf(thrown: unknown): string {
  const { code, name, message, cause } = thrown as NodeJS.ErrnoException & { cause?: unknown };
  if (code !== undefined && code !== "") return code;
  if (cause !== undefined) return reasonOf(cause);
  if (thrown instanceof AggregateError) return reasonOf(thrown.errors[0]);
  return name === "TimeoutError" ? "no answer in time" : (message.split("\n")[0] ?? name);
}
