/**
 * Where the database of a data directory lives: its home, which holds the cluster and belongs to the server's user.
 *
 * 1. A home once chosen stays: a cluster in DATA_DIR/postgres, or the place that DATA_DIR/postgres-location names, is
 *    used or the start fails. An empty database never takes the place of a lost one.
 * 2. The location is noted before anything is in the place, and the place has a random name, so it is nobody else's.
 */
import {
  access,
  chmod,
  chown,
  constants,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { handOver, isRoot, mayEnter, type ServerUser, unprivilegedUser, userName } from "./postgres-user.ts";

/** The server's own directory, and who it belongs to when that isn't this process's user. */
export interface ServerHome {
  readonly path: string;
  /** The cluster's directory, which exists only when it is complete. */
  readonly cluster: string;
  readonly user: ServerUser | undefined;
}

/** The file in a data directory that names the home where that is elsewhere. */
export const locationFileName = "postgres-location";

/** Directories for databases whose data directory the server's user can't reach, best first. */
const elsewhere = ["/var/lib/media-gateway", tmpdir()];

/** Makes the data directory if need be and returns its absolute path. Throws StartError when it can't be written to. */
export async function prepareDataDirectory(dataDir: string): Promise<string> {
  const path = resolve(dataDir);
  try {
    const made = await mkdir(path, { recursive: true });
    // Root's data directory is one that the server's user may pass through; the files in it are closed one by one.
    if (made !== undefined) await chmod(path, isRoot() ? 0o711 : 0o700);
    await access(path, constants.W_OK | constants.X_OK);
    if (!(await stat(path)).isDirectory()) throw Object.assign(new Error(), { code: "ENOTDIR" });
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    throw new StartError(`DATA_DIR ${path} is not writable (${code}); set another one`, { cause: thrown });
  }
  return path;
}

/** The home that belongs to `dataDir`, made on the first start. Throws StartError. */
export async function locateHome(dataDir: string, log: Log): Promise<ServerHome> {
  const near = join(dataDir, "postgres");
  const locationFile = join(dataDir, locationFileName);
  const noted = (await readFile(locationFile, "utf8").catch(() => "")).trim();
  if (noted !== "") {
    if (await exists(noted)) return warnElsewhere(await openHome(noted), log);
    // 1.
    throw new StartError(
      `the database of DATA_DIR ${dataDir} is at ${noted}, which is missing; ` +
        `bring it back, or remove ${locationFile} to begin with an empty one`,
    );
  }
  if (await exists(join(near, "cluster"))) return openHome(near);
  const user = await unprivilegedUser();
  if (user === undefined || (await mayEnter(dataDir, user))) {
    await mkdir(near, { recursive: true, mode: 0o700 });
    if (user === undefined || (await transfer(near, user))) return openHome(near);
  }
  const home = await placeElsewhere(user);
  await writeAtomically(locationFile, `${home}\n`); // 2.
  return warnElsewhere(await openHome(home), log);
}

/** Logged at each start, lest a copy of the data directory be taken for a backup of the database. */
function warnElsewhere(home: ServerHome, log: Log): ServerHome {
  log.warn({ home: home.path }, "PostgreSQL's user can't reach DATA_DIR: the database is kept elsewhere");
  return home;
}

/** Writes a file that only this user may read, wholly or not at all. */
export async function writeAtomically(path: string, text: string): Promise<void> {
  const partial = `${path}.partial`;
  await writeFile(partial, text, { mode: 0o600, flush: true });
  await rename(partial, path);
}

/** Whether something is at `path`. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** As root the owner of the home runs the server, so that a cluster stays usable whoever made it. */
async function openHome(path: string): Promise<ServerHome> {
  const home = { path, cluster: join(path, "cluster") };
  const { uid, gid } = await stat(path);
  if (!isRoot()) {
    if (process.getuid !== undefined && uid !== process.getuid()) {
      throw new StartError(`${path} belongs to user ${await userName(uid)}; start as that user or as root`);
    }
    return { ...home, user: undefined };
  }
  const user = uid === 0 ? await unprivilegedUser() : { name: await userName(uid), uid, gid };
  if (user === undefined) return { ...home, user };
  if (uid === 0) await handOver(path, user);
  if (!(await mayEnter(path, user))) {
    throw new StartError(
      `PostgreSQL runs under user ${user.name}, who can't reach ${path}; let that user pass through its parents`,
    );
  }
  return { ...home, user };
}

async function placeElsewhere(user: ServerUser): Promise<string> {
  for (const parent of elsewhere) {
    try {
      if ((await mkdir(parent, { recursive: true })) !== undefined) await chmod(parent, 0o711);
      if (!(await mayEnter(parent, user))) continue;
      const home = await mkdtemp(join(parent, "media-gateway-")); // 2.
      if (await transfer(home, user)) return home;
    } catch {
      // Not there, or not ours to write to: the next one may be.
    }
  }
  throw new StartError(
    `PostgreSQL runs under user ${user.name}, who can't reach DATA_DIR or any of ${elsewhere.join(", ")}; ` +
      "set DATA_DIR to a directory that user can reach, or set DATABASE_URL",
  );
}

/** Makes a user the owner of an empty directory; false where that isn't allowed or the file system doesn't know owners. */
async function transfer(directory: string, user: ServerUser): Promise<boolean> {
  try {
    await chown(directory, user.uid, user.gid);
    await chmod(directory, 0o700);
  } catch {
    return false;
  }
  const { uid, mode } = await stat(directory);
  return uid === user.uid && (mode & 0o777) === 0o700;
}
