import type { Audience } from "../../../lib/identity/issuer.ts";
import { audiences } from "../../../lib/identity/issuer.ts";
import type { Cli } from "../connect.ts";
import { urlNames } from "../connect.ts";
import { type Finding, notChecked, reasonOf, type Surroundings } from "./check.ts";

const timeoutMs = 5000;

/** Each service's own word on whether it can serve, and the gateway's. */
export async function checkServices(surroundings: Surroundings, cli: Cli): Promise<readonly Finding[]> {
  const { env, isStandalone } = surroundings;
  const gateway = checkGateway(surroundings);
  if (isStandalone) {
    return Promise.all([
      checkReady("standalone's services", cli.urlOf("account"), "start it with npm start"),
      gateway,
    ]);
  }
  const services = audiences.map((audience: Audience) => {
    const what = `service ${audience}`;
    const variable = urlNames[audience];
    if (!env[variable]) return notChecked(what, variable);
    return checkReady(what, cli.urlOf(audience), `see that it runs and that ${variable} is right`);
  });
  return Promise.all([...services, gateway]);
}

async function checkReady(what: string, url: string, remedy: string): Promise<Finding> {
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
    if (answer.ok) return { what, health: "ok", found: `ready at ${url}` };
    const { problems } = (await answer.json()) as { problems?: unknown };
    const found = Array.isArray(problems) ? problems.join("; ") : `status ${answer.status}`;
    return { what, health: "wrong", found: `not ready: ${found}`, remedy: "its log says more" };
  } catch (thrown) {
    return { what, health: "wrong", found: `${url} does not answer (${reasonOf(thrown)})`, remedy };
  }
}

async function checkGateway({ env, isStandalone }: Surroundings): Promise<Finding> {
  const what = "gateway";
  const url = env.PUBLIC_URL || (isStandalone ? `http://localhost:${env.PORT || 8080}` : undefined);
  if (url === undefined) return notChecked(what, "PUBLIC_URL");
  try {
    const answer = await fetch(`${url.replace(/\/+$/, "")}/healthz`, {
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (answer.ok) return { what, health: "ok", found: `answers at ${url}` };
    return { what, health: "wrong", found: `status ${answer.status} at ${url}`, remedy: "its log says more" };
  } catch (thrown) {
    const remedy = "see that it runs, and that PUBLIC_URL or PORT is right";
    return { what, health: "wrong", found: `${url} does not answer (${reasonOf(thrown)})`, remedy };
  }
}

/** Whether the services take the operator's key: it is one of theirs, and the clocks agree. */
export async function checkAdminCall(cli: Cli): Promise<Finding> {
  const what = "a call with the operator's key";
  try {
    await (await cli.account()).listAccounts({ pageSize: 1 });
    return { what, health: "ok", found: "the account service takes it" };
  } catch (thrown) {
    const found = (thrown as Error).message;
    const remedy = "its public half must be in the set of SERVICE_JWKS_FILE, and clocks may differ by 10 s";
    return { what, health: "wrong", found, remedy };
  }
}
