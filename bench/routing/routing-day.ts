/**
 * A day of outages, slowdowns and price changes at three vendors of one model, simulated from a seed with the real router,
 * health and attempts: what the gateway makes of it beside each vendor alone. `node bench/routing/routing-day.ts`
 * (`--hours 24 --rate 1 --seed 1`, `--json`)
 */
import { parseArgs } from "node:util";
import { type Day, type Fared, simulateDay } from "./simulation.ts";

const { values } = parseArgs({
  options: {
    hours: { type: "string", default: "24" },
    rate: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
});

function tell({
  name,
  requests,
  availability,
  medianMs,
  slowMs,
  meanLostMs,
  slowLostMs,
  usdPerMillion,
}: Fared): void {
  const cells = [
    name.padEnd(8),
    `${requests} requests`,
    `answered ${(availability * 100).toFixed(3)} %`,
    `first audio p50 ${medianMs.toFixed(0)} ms, p99 ${slowMs.toFixed(0)} ms`,
    `of it lost with failed attempts ${meanLostMs.toFixed(1)} ms in the mean, p99.9 ${slowLostMs.toFixed(0)} ms`,
    `${usdPerMillion.toFixed(2)} USD a million characters`,
  ];
  console.log(cells.join(" | "));
}

function compare({ gateway, single }: Day): void {
  for (const fared of [gateway, ...single]) tell(fared);
  const by = (keyOf: (fared: Fared) => number) =>
    single.toSorted((one, other) => keyOf(one) - keyOf(other))[0] ?? gateway;
  const unanswered = ({ requests, availability }: Fared) => Math.round(requests * (1 - availability));
  const best = by(unanswered);
  const cheapest = by(({ usdPerMillion }) => usdPerMillion);
  const costOver = (fared: Fared) =>
    `${(gateway.usdPerMillion / fared.usdPerMillion).toFixed(2)} times its cost`;
  const later = (gateway.medianMs - best.medianMs).toFixed(0);
  console.log(
    `against ${best.name}, the most available: ${unanswered(gateway)} unanswered in place of ${unanswered(best)}, median ${later} ms later, ${costOver(best)}`,
  );
  console.log(`against ${cheapest.name}, the cheapest: ${costOver(cheapest)}`);
}

const day = await simulateDay({
  seed: Number(values.seed),
  hours: Number(values.hours),
  requestsASecond: Number(values.rate),
});
if (values.json) console.log(JSON.stringify(day));
else compare(day);
