import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { answerOf } from "../../api/api.ts";
import { Badge } from "../../kit/badge.tsx";
import { CopyButton } from "../../kit/copy-button.tsx";
import { Dialog } from "../../kit/dialog.tsx";
import { MoneyText } from "../../kit/money-text.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { useApi } from "../../session/session-context.tsx";
import { AttemptList } from "./attempt-list.tsx";
import type { Generation } from "./requests-query.ts";
import { TimingBar } from "./timing-bar.tsx";
import { consumed, mediumOf, toneOf } from "./words.ts";

/** What GET /generation tells, which lacks what only the list has. */
type OneGeneration = Omit<Generation, ListedOnly> & Partial<Generation>;

type ListedOnly = "provider_slug" | "api_key_hash" | "api_key_name" | "user_id";

interface RequestDialogProps {
  /** Undefined while none is open. */
  readonly id: string | undefined;
  /** The rows that are there; a generation of an address may not be among them. */
  readonly rows: readonly Generation[];
  readonly onClose: () => void;
}

/** All that is known of one generation, over the list. */
export function RequestDialog({ id, rows, onClose }: RequestDialogProps) {
  return (
    <Dialog title="Request" isOpen={id !== undefined} onClose={onClose}>
      <div className="page-requests request-detail">
        {id !== undefined && <RequestDetail id={id} listed={rows.find((row) => row.id === id)} />}
      </div>
    </Dialog>
  );
}

function RequestDetail({ id, listed }: { id: string; listed: Generation | undefined }) {
  const api = useApi("management");
  const generation = useQuery<OneGeneration>({
    queryKey: ["generation", id],
    queryFn: async () => (await answerOf(api.GET("/generation", { params: { query: { id } } }))).data,
    // A record changes no more.
    ...(listed !== undefined && { initialData: listed, staleTime: Number.POSITIVE_INFINITY }),
  });
  return (
    <QueryView query={generation} lines={8}>
      {(known) => (
        <>
          <Facts generation={known} />
          <h3>Timing</h3>
          <TimingBar generation={known} />
          <h3>Attempts</h3>
          <AttemptList attempts={known.provider_responses} />
        </>
      )}
    </QueryView>
  );
}

function Facts({ generation }: { generation: OneGeneration }) {
  const { outcome, reason, is_byok, user_id, session_id, external_user, request_id } = generation;
  const rest: [string, string | null | undefined][] = [
    ["Key", generation.api_key_name],
    ["Member", user_id],
    ["Session", session_id],
    ["User", external_user],
    ["Request", request_id],
  ];
  return (
    <dl className="facts">
      <Fact name="Outcome">
        <Badge tone={toneOf(outcome)}>{outcome}</Badge> {reason !== null && <code>{reason}</code>}
      </Fact>
      <Fact name="Generation">
        <code>{generation.id}</code> <CopyButton text={generation.id} what="the generation's id" />
      </Fact>
      <Fact name="Model">
        {generation.model} <span className="soft small">{mediumOf(generation)}</span>
      </Fact>
      <Fact name="Provider">
        {generation.provider_name ?? "None"}
        {is_byok && <span className="soft small"> by your own provider key</span>}
      </Fact>
      <Fact name="Consumed">{consumed(generation).join(" · ") || "Nothing"}</Fact>
      <Fact name="Cost">
        <MoneyText usd={generation.usage} />
      </Fact>
      <Fact name="List price">
        <MoneyText usd={generation.list_price} />
      </Fact>
      {rest.map(
        ([name, text]) =>
          text && (
            <Fact key={name} name={name}>
              {text}
            </Fact>
          ),
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
