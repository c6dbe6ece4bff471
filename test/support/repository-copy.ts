import { copyFile, mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { listFiles, repositoryRoot } from "../rules/source-files.ts";
import { temporaryDirectory } from "./postgres/temporary-directory.ts";

/**
 * A fresh folder with a copy of every file of the repository, which uses the node_modules of this one; removed at the
 * end of the test file.
 */
export async function copyRepository(): Promise<string> {
  const root = await temporaryDirectory();
  for (const path of listFiles()) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await copyFile(join(repositoryRoot, path), join(root, path));
  }
  await symlink(join(repositoryRoot, "node_modules"), join(root, "node_modules"));
  return root;
}
