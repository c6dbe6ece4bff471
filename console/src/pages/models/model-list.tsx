import { Badge } from "../../kit/badge.tsx";
import { DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { SelectField } from "../../kit/select-field.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { go, hrefOf, useHashRoute } from "../../route/hash-route.ts";
import { isSpeechModel, type Model } from "./model-queries.ts";
import { priceWords } from "./prices.ts";

const media = [
  { id: "all", title: "Speech and images" },
  { id: "speech", title: "Speech" },
  { id: "image", title: "Images" },
] as const;

/** All models, to be searched. */
export function ModelList({ models }: { models: readonly Model[] }) {
  const { query } = useHashRoute();
  const search = query.get("q") ?? "";
  const medium = media.find(({ id }) => id === query.get("medium"))?.id ?? "all";
  const narrow = (q: string, chosen: string) =>
    go(hrefOf(["models"], { q, medium: chosen === "all" ? "" : chosen }), { replace: true });
  const found = models.filter((model) => isFound(model, search, medium));
  return (
    <>
      <search className="models-filter">
        <TextField
          label="Search"
          placeholder="Name, author or provider"
          value={search}
          onChange={(q) => narrow(q, medium)}
        />
        <SelectField
          label="Makes"
          options={media}
          value={medium}
          onChange={(chosen) => narrow(search, chosen)}
        />
      </search>
      <p className="soft small" role="status">
        {found.length} of {models.length} models
      </p>
      <ModelTable models={found} isNarrowed={models.length > 0} />
    </>
  );
}

function isFound(model: Model, search: string, medium: string): boolean {
  if (medium !== "all" && isSpeechModel(model) !== (medium === "speech")) return false;
  const providers = model.endpoints.map(({ provider_name }) => provider_name);
  const text = [model.id, model.name, ...providers].join(" ").toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function ModelTable({ models, isNarrowed }: { models: readonly Model[]; isNarrowed: boolean }) {
  return (
    <DataTable
      caption="Models"
      rows={models}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Model",
          cell: ({ id, name }) => (
            <div className="model-name">
              <a href={hrefOf(["models", id])}>{name}</a>
              <code className="soft small">{id}</code>
            </div>
          ),
        },
        { title: "Makes", cell: (model) => <Badge>{isSpeechModel(model) ? "Speech" : "Images"}</Badge> },
        { title: "Price", cell: ({ endpoints: [first] }) => <PriceList lines={first?.pricing ?? []} /> },
        {
          title: "Offered by",
          cell: ({ endpoints }) => [...new Set(endpoints.map((each) => each.provider_name))].join(", "),
        },
      ]}
      empty={
        <section className="card">
          {isNarrowed ? (
            <EmptyState title="No model is like that">
              <p>Search for less, or for another medium.</p>
            </EmptyState>
          ) : (
            <EmptyState title="No model can be used yet">
              <p>
                Switch a provider on: the <a href={hrefOf([""])}>first page</a> says how.
              </p>
            </EmptyState>
          )}
        </section>
      }
    />
  );
}

/** Prices in words, one below the other. */
export function PriceList({ lines }: { lines: Parameters<typeof priceWords>[0][] }) {
  return (
    <ul className="price-list number">
      {lines.map((line) => (
        <li key={priceWords(line)}>{priceWords(line)}</li>
      ))}
    </ul>
  );
}
