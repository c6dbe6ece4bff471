export { type Child, type ChildOptions, startChild } from "../../commands/child.ts";
