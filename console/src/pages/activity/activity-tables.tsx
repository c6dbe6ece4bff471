import { ActionButton } from "../../kit/action-button.tsx";
import { type CsvColumn, csvOf } from "../../kit/csv.ts";
import { type Column, DataTable } from "../../kit/data-table.tsx";
import { decimalUsd, nanoUsdOf } from "../../kit/money.ts";
import { MoneyText } from "../../kit/money-text.tsx";
import { saveFile } from "../../kit/save-file.ts";
import { TimeText } from "../../kit/time-text.tsx";
import type { ActivityProps } from "./activity-query.ts";
import { firstByteWithin, groupsOf, type Point, type Totals, totalsOf } from "./totals.ts";

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });

interface GroupRow {
  readonly id: string;
  readonly name: string;
  readonly totals: Totals;
}

interface StepRow extends GroupRow {
  readonly at: string;
}

/** All that the charts show, in figures. */
export function ActivityTables({ points, boundsMs, choice, nameOf }: ActivityProps) {
  const groups: GroupRow[] = groupsOf(points).map(({ group, totals }) => ({
    id: group ?? "",
    name: nameOf(group),
    totals,
  }));
  const by = choice.by.replace(/^./, (letter) => letter.toUpperCase());
  const steps: StepRow[] = points.toReversed().map((point) => ({
    id: `${point.starts_at} ${point.group}`,
    at: point.starts_at,
    name: nameOf(point.group),
    totals: totalsOf([point]),
  }));
  return (
    <>
      <section className="stack" aria-labelledby="groups">
        <div className="card-head">
          <h2 id="groups">By {choice.by}</h2>
          <CsvButton points={points} choice={choice} boundsMs={boundsMs} nameOf={nameOf} />
        </div>
        <DataTable
          caption={`Activity by ${choice.by}`}
          rows={[...groups, { id: "all", name: "All", totals: totalsOf(points) }]}
          keyOf={({ id, name }) => `${id} ${name}`}
          columns={[{ title: by, cell: ({ name }) => <Name name={name} /> }, ...figures(points, boundsMs)]}
          empty={null}
        />
      </section>
      <section className="stack" aria-labelledby="steps">
        <h2 id="steps">{choice.step === "hour" ? "Every hour" : "Every day (UTC)"}</h2>
        <DataTable
          caption={`Activity by the ${choice.step} and ${choice.by}`}
          rows={steps}
          keyOf={({ id }) => id}
          columns={[
            {
              title: choice.step === "hour" ? "Hour from" : "Day",
              cell: ({ at }) => (choice.step === "hour" ? <TimeText at={at} /> : day.format(new Date(at))),
            },
            { title: by, cell: ({ name }) => <Name name={name} /> },
            ...figures(points, boundsMs),
          ]}
          empty={null}
        />
      </section>
    </>
  );
}

function Name({ name }: { name: string }) {
  return <span className="name">{name}</span>;
}

/** The columns of figures; those of own keys and tokens only where there are any. */
function figures<T extends GroupRow>(points: readonly Point[], boundsMs: readonly number[]): Column<T>[] {
  const { ownKeysNanoUsd, tokens } = totalsOf(points);
  const ownKeys: Column<T> = {
    title: "Own keys, list price",
    isNumber: true,
    cell: ({ totals }) => <MoneyText usd={totals.ownKeysNanoUsd} />,
  };
  const allTokens: Column<T> = {
    title: "Tokens",
    isNumber: true,
    cell: ({ totals }) => totals.tokens.toLocaleString(),
  };
  const within = (share: number) => (row: T) =>
    firstByteWithin(row.totals.firstByteCounts, boundsMs, share) ?? "–";
  return [
    { title: "Requests", isNumber: true, cell: ({ totals }) => totals.requests.toLocaleString() },
    { title: "Errors", isNumber: true, cell: ({ totals }) => totals.errors.toLocaleString() },
    { title: "Spend", isNumber: true, cell: ({ totals }) => <MoneyText usd={totals.nanoUsd} /> },
    ...(ownKeysNanoUsd === 0n ? [] : [ownKeys]),
    ...(tokens === 0 ? [] : [allTokens]),
    { title: "First byte, half", isNumber: true, cell: within(0.5) },
    { title: "First byte, 95 %", isNumber: true, cell: within(0.95) },
  ];
}

function CsvButton({ points, choice, boundsMs, nameOf }: ActivityProps) {
  const usd = (amount: number) => decimalUsd(nanoUsdOf(amount));
  const columns: CsvColumn<Point>[] = [
    { title: "starts_at", value: ({ starts_at }) => starts_at },
    { title: choice.by, value: ({ group }) => group },
    { title: "name", value: ({ group }) => nameOf(group) },
    { title: "requests", value: ({ requests }) => requests },
    { title: "errors", value: ({ errors }) => errors },
    { title: "usage_usd", value: ({ usage }) => usd(usage) },
    { title: "own_keys_list_price_usd", value: ({ byok_usage_inference }) => usd(byok_usage_inference) },
    { title: "prompt_tokens", value: ({ prompt_tokens }) => prompt_tokens },
    { title: "completion_tokens", value: ({ completion_tokens }) => completion_tokens },
    ...[...boundsMs, undefined].map((bound, index) => ({
      title: bound === undefined ? "first_byte_later" : `first_byte_to_${bound}_ms`,
      value: ({ first_byte_counts: counts }: Point) => counts[index] ?? 0,
    })),
  ];
  const save = () =>
    saveFile(
      `activity-by-${choice.step}-and-${choice.by}.csv`,
      new Blob([csvOf(columns, points)], { type: "text/csv;charset=utf-8" }),
    );
  return <ActionButton onPress={save}>Download CSV</ActionButton>;
}
