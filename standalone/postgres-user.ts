import { lchown, readdir, readFile, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { StartError } from "../lib/runtime/start-error.ts";

/** A user of the system under which the database server runs. */
export interface ServerUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** Users that most systems have and that own nothing of worth, best first. */
const candidates = ["postgres", "nobody"];

/**
 * The user that PostgreSQL, which refuses to run as root, gets when this process is root: the first of `postgres` and
 * `nobody` that exists. Undefined when this process isn't root: then its own user will do. Throws StartError.
 */
export async function unprivilegedUser(): Promise<ServerUser | undefined> {
  if (!isRoot()) return undefined;
  const users = await systemUsers();
  for (const name of candidates) {
    const user = users.find((known) => known.name === name);
    if (user !== undefined) return user;
  }
  throw new StartError(
    `PostgreSQL does not run as root and there is no user ${candidates.join(" or ")} to run it under; ` +
      "start as another user or set DATABASE_URL",
  );
}

/** True when this process may act as any user. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Name of a user for people to read. */
export async function userName(uid: number): Promise<string> {
  return (await systemUsers()).find((user) => user.uid === uid)?.name ?? `${uid}`;
}

/** Whether `user` can reach what lies in `directory`: all directories down to it let that user pass. */
export async function mayEnter(directory: string, user: ServerUser): Promise<boolean> {
  let current = await realpath(directory);
  for (;;) {
    const { mode, uid, gid } = await stat(current);
    const passBit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & passBit) === 0) return false;
    const parent = dirname(current);
    if (parent === current) return true;
    current = parent;
  }
}

/** Makes `user` the owner of `path` and of all that is in it; links are not followed. */
export async function handOver(path: string, user: ServerUser): Promise<void> {
  await lchown(path, user.uid, user.gid);
  for (const entry of await readdir(path, { recursive: true })) {
    await lchown(join(path, entry), user.uid, user.gid);
  }
}

/** Users listed in /etc/passwd (`name:password:uid:gid:…`); none where there is no such file. */
async function systemUsers(): Promise<ServerUser[]> {
  const text = await readFile("/etc/passwd", "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    const [name = "", , uid = "", gid = ""] = line.split(":");
    return /^\d+$/.test(uid) && /^\d+$/.test(gid) ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}
