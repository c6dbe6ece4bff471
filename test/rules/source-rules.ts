import { type ESTree, Visitor } from "vite";
import type { Measured } from "./path-rules.ts";
import { isTestFile, lineAt, type SourceFile } from "./source-files.ts";

/** What a rule found: `path:line: what is wrong`. */
export type Findings = string[];

/** Breaches of the rules on a file's code; empty when it keeps them. */
export function checkSource(file: SourceFile): Findings {
  return [
    ...checkExports(file),
    ...checkModuleState(file),
    ...checkComments(file),
    ...(isTestFile(file.path) ? checkTestCalls(file) : []),
  ];
}

function finding(file: SourceFile, position: number, message: string): string {
  return `${file.path}:${lineAt(file.text, position)}: ${message}`;
}

/** A docstring directly before whatever is exported. */
function checkExports(file: SourceFile): Findings {
  const findings: Findings = [];
  const local = new Set<string>();
  for (const statement of file.parsed.program.body) {
    if (statement.type !== "ExportNamedDeclaration") continue;
    if (statement.declaration === null) {
      if (statement.source === null)
        for (const { local: name } of statement.specifiers) local.add(nameOf(name));
    } else if (!isDocumented(file, statement.start) && !isLaterOverload(file, statement)) {
      findings.push(finding(file, statement.start, "exported without a docstring"));
    }
  }
  for (const statement of file.parsed.program.body) {
    if (declaredNames(statement).some((name) => local.has(name)) && !isDocumented(file, statement.start)) {
      findings.push(finding(file, statement.start, "exported without a docstring"));
    }
  }
  return findings;
}

function nameOf(node: ESTree.ModuleExportName): string {
  return node.type === "Literal" ? node.value : node.name;
}

function declaredNames(statement: ESTree.Program["body"][number]): string[] {
  switch (statement.type) {
    case "FunctionDeclaration":
    case "ClassDeclaration":
    case "TSInterfaceDeclaration":
    case "TSTypeAliasDeclaration":
      return statement.id === null ? [] : [statement.id.name];
    case "VariableDeclaration":
      return statement.declarations.flatMap(({ id }) => (id.type === "Identifier" ? [id.name] : []));
    default:
      return [];
  }
}

function isDocumented(file: SourceFile, start: number): boolean {
  const comment = file.parsed.comments.findLast(({ end }) => end <= start);
  if (comment?.type !== "Block" || !comment.value.startsWith("*")) return false;
  return comment.value.replaceAll("*", "").trim() !== "" && file.text.slice(comment.end, start).trim() === "";
}

/** The docstring of an overloaded function stands before its first signature. */
function isLaterOverload(file: SourceFile, statement: ESTree.ExportNamedDeclaration): boolean {
  const body = file.parsed.program.body;
  const before = body[body.indexOf(statement) - 1];
  if (before?.type !== "ExportNamedDeclaration" || before.declaration?.type !== "TSDeclareFunction")
    return false;
  const { declaration } = statement;
  if (declaration?.type !== "TSDeclareFunction" && declaration?.type !== "FunctionDeclaration") return false;
  return before.declaration.id?.name === declaration.id?.name;
}

/** Nothing at the top of a module that changes later: no `let`, and no container that starts empty. */
function checkModuleState(file: SourceFile): Findings {
  if (isTestFile(file.path)) return [];
  const findings: Findings = [];
  for (const statement of file.parsed.program.body) {
    const declaration = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration?.type !== "VariableDeclaration") continue;
    const isState =
      declaration.kind !== "const" || declaration.declarations.some(({ init }) => startsEmpty(init));
    if (isState) findings.push(finding(file, statement.start, "state at module level"));
  }
  return findings;
}

function startsEmpty(node: ESTree.Expression | null): boolean {
  if (node?.type === "ArrayExpression") return node.elements.length === 0;
  if (node?.type === "ObjectExpression") return node.properties.length === 0;
  return (
    node?.type === "NewExpression" &&
    node.arguments.length === 0 &&
    /^(Weak)?(Map|Set)$/.test(identifier(node.callee))
  );
}

function identifier(node: ESTree.Node): string {
  return node.type === "Identifier" ? node.name : "";
}

/** A line of a comment that reads like a statement. */
const codeLine =
  /^\s*(import\s.+from\s+["'].+|(const|let|var)\s[\w{[].*=.*|return\b.*;|(if|for|while)\s*\(.*\)\s*\{?|await\s.+\);?|[\w.]+\(.*\);|[})]+;?)\s*$/;

/** No code that was commented out. */
function checkComments(file: SourceFile): Findings {
  return file.parsed.comments
    .filter(({ value }) => !value.startsWith("*") && value.split("\n").some((line) => codeLine.test(line)))
    .map(({ start }) => finding(file, start, "commented-out code"));
}

const sleepers: ReadonlySet<string> = new Set(["setTimeout", "setInterval", "delay"]);
/** Biome sees the others. */
const silentModes: ReadonlySet<string> = new Set(["skipIf", "runIf", "todo"]);
const testFunctions: ReadonlySet<string> = new Set(["test", "it", "describe"]);

/** Tests wait for conditions, not for time, and what they skip they skip with a reason: `context.skip(reason)`. */
function checkTestCalls(file: SourceFile): Findings {
  const findings: Findings = [];
  // With a clock of its own a test does not wait.
  const maySleep = !/\.(test|suite)\.ts$/.test(file.path) || file.text.includes("vi.useFakeTimers(");
  new Visitor({
    CallExpression(node) {
      if (sleepers.has(identifier(node.callee)) && !maySleep) {
        findings.push(finding(file, node.start, "sleeps; use waitUntil"));
      }
    },
    ImportDeclaration(node) {
      const waits = node.specifiers.some(
        (specifier) => specifier.type === "ImportSpecifier" && sleepers.has(nameOf(specifier.imported)),
      );
      if (/^(node:)?timers\/promises$/.test(node.source.value) && waits && !maySleep) {
        findings.push(finding(file, node.start, "sleeps; use waitUntil"));
      }
    },
    MemberExpression(node) {
      if (testFunctions.has(identifier(node.object)) && silentModes.has(identifier(node.property))) {
        findings.push(finding(file, node.start, "skips without a reason; use context.skip(reason)"));
      }
    },
  }).visit(file.parsed.program);
  return findings;
}

/** Every function of a file that people may find too long. Lists of tests are none: their tests are. */
export function measureFunctions(file: SourceFile): Measured[] {
  const measured: Measured[] = [];
  let named = "";
  const measure = (node: ESTree.Function | ESTree.ArrowFunctionExpression) => {
    if (node.body === null || registersTests(node)) return;
    const name = (node.type !== "ArrowFunctionExpression" && node.id?.name) || named;
    const first = lineAt(file.text, node.start);
    const lines = lineAt(file.text, node.end) - first + 1;
    measured.push({ what: `${file.path}#${name || `line ${first}`}`, lines, limit: 50, hardLimit: 60 });
  };
  const nameFrom = (key: ESTree.Node, value: ESTree.Node | null) => {
    const isFunction = value?.type === "ArrowFunctionExpression" || value?.type === "FunctionExpression";
    if (isFunction) named = identifier(key) || (key.type === "PrivateIdentifier" ? key.name : "");
  };
  new Visitor({
    VariableDeclarator: (node) => nameFrom(node.id, node.init),
    MethodDefinition: (node) => nameFrom(node.key, node.value),
    Property: (node) => nameFrom(node.key, node.value),
    FunctionDeclaration: measure,
    FunctionExpression(node) {
      measure(node);
      named = "";
    },
    ArrowFunctionExpression(node) {
      measure(node);
      named = "";
    },
  }).visit(file.parsed.program);
  return measured;
}

function registersTests(node: ESTree.Function | ESTree.ArrowFunctionExpression): boolean {
  if (node.body?.type !== "BlockStatement") return false;
  return node.body.body.some(
    (statement) =>
      statement.type === "ExpressionStatement" &&
      statement.expression.type === "CallExpression" &&
      testFunctions.has(rootOf(statement.expression.callee)),
  );
}

/** `test` of `test.for([1])`. */
function rootOf(node: ESTree.Node): string {
  if (node.type === "MemberExpression") return rootOf(node.object);
  return node.type === "CallExpression" ? rootOf(node.callee) : identifier(node);
}
