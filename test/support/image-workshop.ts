/**
 * Builds the image of deploy/Dockerfile with buildah where no registry of images can be reached, to look into it and to
 * run it.
 *
 * - It stands on images made of this machine's own Debian packages: what BASE_IMAGE promises, and no more.
 * - Everything lies in one folder, which is removed in the end; the machine's own images are neither used nor changed.
 */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runProgram } from "../../commands/fetch/kept-folder.ts";
import { StartError } from "../../lib/runtime/start-error.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const stepTimeoutMs = 900_000;
const basePackages = ["libc6", "libgcc-s1", "libstdc++6"];
const shellPackages = ["dash", "coreutils", "findutils"];
const shellLibraries = ["libselinux1", "libpcre2-8-0", "libacl1", "libattr1", "libgmp10"];
const unneeded = /^\/usr\/share\/(doc|man|locale|info|lintian)\//;
const certificates = "etc/ssl/certs/ca-certificates.crt";

/** Why this machine can't build the image, in one line; undefined when it can. */
export function imageUnavailable(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    return "only root on Linux can build the image";
  const missing = ["buildah", "dpkg-query", "npm", "unshare", "setpriv"].filter(
    (program) => runProgram(program, ["--version"], { timeoutMs: stepTimeoutMs }).error !== undefined,
  );
  return missing.length === 0 ? undefined : `${missing.join(", ")} missing; building the image needs it`;
}

/** What a built image says of itself. */
export interface ImageDescription {
  readonly config: {
    readonly User: string;
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Volumes?: Readonly<Record<string, object>>;
    readonly Env: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
}

/** A place where the image is built. */
export interface ImageWorkshop {
  /**
   * Builds the sources as they were when the workshop opened, the last target unless told; returns the image's id, a
   * digest of all that it has.
   */
  build(tag: string, target?: string): string;
  describe(tag: string): ImageDescription;
  /** Mounts a built image; returns the path of its root folder. */
  mount(tag: string): string;
}

/** Opens a workshop, hands it to `use`, and removes it. Throws StartError when a step fails. */
export async function withImageWorkshop<T>(use: (workshop: ImageWorkshop) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "image-"));
  const places = ["--root", join(folder, "storage"), "--runroot", join(folder, "run")];
  const buildah = (...args: string[]) =>
    runStep("buildah", [...places, "--storage-driver", "overlay", ...args]);
  try {
    const sources = copySources(folder);
    makeStandIn(folder, "base", basePackages, buildah);
    makeStandIn(folder, "shell", [...basePackages, ...shellPackages, ...shellLibraries], buildah);
    makeStandIn(folder, "build", [...basePackages, ...shellPackages, ...shellLibraries], buildah);
    return await use({
      build: (tag, target) => buildImage({ tag, target }, sources, buildah),
      describe: (tag) => JSON.parse(buildah("inspect", "--type=image", "--format={{.Config}}", tag)),
      mount: (tag) => buildah("mount", buildah("from", tag)),
    });
  } finally {
    const quietly = { timeoutMs: stepTimeoutMs };
    runProgram("buildah", [...places, "--storage-driver", "overlay", "rm", "--all"], quietly);
    runProgram("umount", ["--recursive", join(folder, "storage", "overlay")], quietly);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Two builds must see the same files, whoever edits them meanwhile. */
function copySources(folder: string): string {
  const sources = join(folder, "sources");
  const skipped = new Set(
    ["node_modules", ".git", ".data", ".test-output", "dist"].map((name) => join(root, name)),
  );
  cpSync(root, sources, { recursive: true, filter: (path) => !skipped.has(path) });
  return sources;
}

function buildImage(
  { tag, target }: { readonly tag: string; readonly target: string | undefined },
  sources: string,
  buildah: (...args: string[]) => string,
): string {
  const cache = runStep("npm", ["config", "get", "cache"]);
  const stands = ["BUILD_IMAGE=build", "BASE_IMAGE=base", "STANDALONE_BASE_IMAGE=shell"];
  const images = stands.flatMap((image) => ["--build-arg", image.replace("=", "=localhost/")]);
  const options = ["--isolation=chroot", "--network=host", "--timestamp=0", "--quiet", ...images];
  const file = join(sources, "deploy", "Dockerfile");
  return buildah(
    "bud",
    ...options,
    `--volume=${cache}:/var/cache/npm`,
    ...(target === undefined ? [] : [`--target=${target}`]),
    `--tag=${tag}`,
    `--file=${file}`,
    sources,
  );
}

/** An image of files that Debian packages of this machine own; that for building has npm and this machine's trust, too. */
function makeStandIn(
  folder: string,
  name: string,
  packages: readonly string[],
  buildah: (...args: string[]) => string,
): void {
  const files = join(folder, name);
  // A container engine mounts the first three, and the hosts.
  for (const path of ["proc", "dev", "tmp", "usr/local/bin", "usr/local/lib/node_modules"]) {
    mkdirSync(join(files, path), { recursive: true });
  }
  mkdirSync(join(files, "etc"));
  writeFileSync(join(files, "etc/hosts"), "127.0.0.1 localhost\n");
  copyPackages(files, packages);
  if (name === "build") {
    cpSync(process.execPath, join(files, "usr/local/bin/node"));
    cpSync(npmFolder(), join(files, "usr/local/lib/node_modules/npm"), { recursive: true });
    symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(files, "usr/local/bin/npm"));
    mkdirSync(dirname(join(files, certificates)), { recursive: true });
    cpSync(join("/", certificates), join(files, certificates), { dereference: true });
  }
  const container = buildah("from", "scratch");
  buildah("add", "--quiet", container, files, "/");
  const environment = ["PATH=/usr/local/bin:/usr/bin:/bin"];
  if (name === "build") environment.push(`NODE_EXTRA_CA_CERTS=/${certificates}`);
  buildah("config", ...environment.flatMap((variable) => ["--env", variable]), container);
  buildah("commit", "--quiet", "--rm", container, `localhost/${name}`);
}

/** The folder of the npm that is on the path: its program is a link to a file in `bin`. */
function npmFolder(): string {
  const programs = (process.env.PATH ?? "").split(":").map((folder) => join(folder, "npm"));
  const program = programs.find((path) => isFile(path));
  if (program === undefined) throw new StartError("npm is missing");
  return dirname(dirname(realpathSync(program)));
}

/** Through an archive: some of the files are links, and some of the folders on the way to them. */
function copyPackages(target: string, packages: readonly string[]): void {
  const paths = runStep("dpkg-query", ["--listfiles", ...packages]).split("\n");
  const files = paths.filter((path) => path !== "" && !unneeded.test(path) && isFile(path));
  const list = `${target}.list`;
  writeFileSync(list, files.map((path) => `${path.slice(1)}\n`).join(""));
  const archive = `${target}.tar`;
  runStep("tar", [
    "--create",
    "--directory=/",
    "--no-recursion",
    `--files-from=${list}`,
    `--file=${archive}`,
  ]);
  runStep("tar", ["--extract", `--directory=${target}`, `--file=${archive}`]);
  rmSync(archive);
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function runStep(program: string, args: readonly string[]): string {
  const { error, status, stdout, stderr } = runProgram(program, args, { timeoutMs: stepTimeoutMs });
  if (error === undefined && status === 0) return stdout.trim();
  const why = error === undefined ? stderr.trim().split("\n").slice(-8).join("\n") : error.message;
  throw new StartError(`${program} ${args.slice(0, 8).join(" ")} failed:\n${why}`);
}
