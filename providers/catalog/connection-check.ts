import type { Report } from "./image-check.ts";
import { type ConnectionEntry, settingsValidator } from "./provider-schema.ts";
import { type EndpointEntry, schemaFaults } from "./schema.ts";

/** Headers that are of one request or one connection; that of the key is added to them. */
const ownHeaders = ["host", "connection", "content-length", "content-type", "transfer-encoding"];

/** Reports what is wrong with the description of a provider beyond its shape. */
export function checkConnection(connection: ConnectionEntry, report: Report): void {
  const { auth = "bearer", key, headers, base_url, ca_file } = connection;
  const at = (field: string) => `provider.connection.${field}`;
  if (!URL.canParse(base_url)) report(at("base_url"), "is no URL");
  if (auth === "none" && key !== undefined) report(at("key"), "has no meaning without auth");
  const keyHeader = typeof auth === "object" ? [auth.header.toLowerCase()] : [];
  const taken = [...ownHeaders, ...(auth === "none" ? [] : ["authorization", ...keyHeader])];
  for (const name of Object.keys(headers ?? {})) {
    if (taken.includes(name.toLowerCase())) report(at(`headers.${name}`), "is set by the gateway");
  }
  if (ca_file !== undefined && !base_url.startsWith("https:")) report(at("ca_file"), "needs https");
}

/** Reports what an endpoint needs of its provider's connection, described in the same file, that is not there. */
export function checkReach(
  { speech, image, settings }: EndpointEntry,
  connection: ConnectionEntry | undefined,
  report: Report,
): void {
  if (speech?.voices === "fetched" && connection?.paths?.voices === undefined)
    report("speech.voices", "to be fetched need provider.connection.paths.voices");
  if (connection === undefined) return;
  const edits = connection.edits ?? "multipart";
  if (image?.mask === true && edits !== "multipart" && edits !== "image_url")
    report("image.mask", `has no place in edits of the shape ${edits}`);
  for (const fault of schemaFaults(settingsValidator, settings ?? {}))
    report("settings", fault.replace("the file: ", ""));
}
