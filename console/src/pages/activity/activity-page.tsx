import "./activity.css";
import { EmptyState } from "../../kit/empty-state.tsx";
import { PageHeader } from "../../kit/page-header.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { SelectField } from "../../kit/select-field.tsx";
import { go, hrefOf, useHashRoute } from "../../route/hash-route.ts";
import { KeyGate } from "../../session/key-gate.tsx";
import { ActivityCharts } from "./activity-charts.tsx";
import { choiceOf, groupings, spans, useActivity } from "./activity-query.ts";
import { ActivityTables } from "./activity-tables.tsx";

/** Requests, spend, errors and first byte over time. */
export function ActivityPage() {
  return (
    <div className="page-activity">
      <PageHeader title="Activity">
        What ended in each hour or day: requests, what they cost, errors, and how soon the first byte came.
      </PageHeader>
      <KeyGate needs="management">
        <Activity />
      </KeyGate>
    </div>
  );
}

function Activity() {
  const choice = choiceOf(useHashRoute().query);
  const { activity, nameOf } = useActivity(choice);
  const change = (changed: Partial<typeof choice>) => go(hrefOf(["activity"], { ...choice, ...changed }));
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <>
      <div className="choice">
        <SelectField label="Time" options={spans} value={choice.step} onChange={(step) => change({ step })} />
        <SelectField label="By" options={groupings} value={choice.by} onChange={(by) => change({ by })} />
        <p className="soft small">
          {choice.step === "hour"
            ? `Hours are told in your time zone, ${zone}.`
            : "Days are days of UTC, today among them."}
        </p>
      </div>
      <QueryView query={activity} lines={12}>
        {({ data, first_byte_bounds_ms: boundsMs }) =>
          data.length === 0 ? (
            <EmptyState title="No requests in this time">
              <p>
                What ends from now on is counted here. Make the first request on{" "}
                <a href="#/">the Welcome page</a>.
              </p>
            </EmptyState>
          ) : (
            <>
              <ActivityCharts points={data} boundsMs={boundsMs} choice={choice} nameOf={nameOf} />
              <ActivityTables points={data} boundsMs={boundsMs} choice={choice} nameOf={nameOf} />
            </>
          )
        }
      </QueryView>
    </>
  );
}
