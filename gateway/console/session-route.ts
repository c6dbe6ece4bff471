import { timestampDate } from "@bufbuild/protobuf/wkt";
import Type, { type Static } from "typebox";
import type { Strangers } from "../../lib/identity/stranger.ts";
import { compileCheck } from "../body/json-body.ts";
import { type BodyLimits, readJsonBody } from "../body/request-body.ts";
import type { GatewayClients } from "../clients.ts";
import { apiPath } from "../docs/openapi.ts";
import { jsonAnswer, type RouteDocument } from "../docs/route-document.ts";
import { headerText } from "../http/auth.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";

const bodySchema = Type.Object({
  code: Type.String({ minLength: 1, maxLength: 256, description: "The code of the link." }),
});
const checkBody = compileCheck(bodySchema);

const answerSchema = Type.Object({
  data: Type.Object({
    inference_key: Type.String({ description: "A new inference key of all scopes." }),
    management_key: Type.String({ description: "A new management key." }),
    expires_at: Type.String({ format: "date-time", description: "When both expire." }),
  }),
});

const document: RouteDocument = {
  id: "createConsoleSession",
  tag: "Console",
  summary: "Sign the console in",
  description:
    "Exchanges the one-time code of a link, which the operator's command line makes, for two keys that expire in 24 hours. A code serves once, for ten minutes: 404 for any other. Needs no key; 429 for whoever tries too many codes.",
  body: {
    name: "ConsoleSessionRequest",
    schema: bodySchema,
    examples: () => ({
      "from the start": { code: "the-code-that-npm-start-shows" },
      "from the command line": { code: "the-code-of-console-link-create" },
    }),
  },
  answer: jsonAnswer(
    "The keys, shown this once.",
    "ConsoleSession",
    answerSchema,
    {
      data: {
        inference_key: "sk-the-key-itself-shown-this-once",
        management_key: "sk-the-other-key-shown-this-once",
        expires_at: "2030-01-31T12:00:00Z",
      },
    },
    201,
  ),
};

interface ConsoleSessionDependencies extends Pick<GatewayClients, "consoleLinks"> {
  readonly strangers?: Strangers | undefined;
  readonly bodyLimits: BodyLimits;
}

/** POST /api/v1/console/session: keys for the code of a login link. */
export function consoleSessionRoute({
  consoleLinks,
  strangers,
  bodyLimits,
}: ConsoleSessionDependencies): Route {
  return serviceRoute({
    method: "POST",
    path: `${apiPath}/console/session`,
    operation: "consoleSession",
    access: "open",
    document,
    async request(exchange) {
      const { socket, headers } = exchange.request;
      const stranger = strangers?.at(socket.remoteAddress, (name) => headerText(headers[name]));
      stranger?.count();
      return checkBody(await readJsonBody(exchange, bodyLimits));
    },
    call: consoleLinks.redeemConsoleLink,
    answer: ({ inferenceKey, managementKey, expiresAt }): Static<typeof answerSchema> => ({
      data: {
        inference_key: inferenceKey,
        management_key: managementKey,
        expires_at: expiresAt === undefined ? "" : timestampDate(expiresAt).toISOString(),
      },
    }),
    headers: { "cache-control": "no-store" },
  });
}
