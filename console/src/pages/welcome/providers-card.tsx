import { Badge } from "../../kit/badge.tsx";
import { CodeBlock } from "../../kit/code-block.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import type { useAnyApi } from "../../session/session-context.tsx";
import { useProviders } from "./state-cards.tsx";

/** Which providers are on, and by which line each of the others is switched on. */
export function ProvidersCard({ any }: { any: ReturnType<typeof useAnyApi> }) {
  const providers = useProviders(any);
  return (
    <section className="card" aria-labelledby="providers">
      <div>
        <h2 id="providers">Providers</h2>
        <p className="soft">
          The operator switches one on for everybody, by a variable at the start. An account may bring a key
          of its own for most of them.
        </p>
      </div>
      <QueryView query={providers} lines={6}>
        {(all) => (
          <>
            <ul className="row" aria-label="On">
              {all
                .filter(({ is_on }) => is_on)
                .map(({ slug, name }) => (
                  <li key={slug}>
                    <Badge tone="good">{name} on</Badge>
                  </li>
                ))}
            </ul>
            <ul aria-label="Off">
              {all
                .filter(({ is_on }) => !is_on)
                .map((provider) => (
                  <OffLine key={provider.slug} {...provider} />
                ))}
            </ul>
          </>
        )}
      </QueryView>
    </section>
  );
}

interface OffLineProps {
  readonly name: string;
  readonly opened_by: string;
  readonly switched_on_by: string | null;
}

function OffLine({ name, opened_by, switched_on_by: variable }: OffLineProps) {
  return (
    <li className="provider-line">
      <strong>{name}</strong>
      {variable !== null && opened_by === "none" ? (
        <CodeBlock code={`${variable}=... npm start`} what={`the line that switches ${name} on`} />
      ) : (
        <span className="soft">
          {opened_by === "none"
            ? "Its settings switch it on."
            : "It has a key, but none of its models has a price here."}
        </span>
      )}
    </li>
  );
}
