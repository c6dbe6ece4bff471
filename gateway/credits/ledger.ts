import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import Type, { type Static } from "typebox";
import {
  type LedgerEntry,
  LedgerEntryType,
  type ListLedgerEntriesResponse,
  ListLedgerEntriesResponseSchema,
} from "../../gen/media/account/v1/credit_pb.ts";
import type { CreditService } from "../../gen/media/account/v1/credit_service_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";
import { apiPath } from "../docs/openapi.ts";
import {
  cursorPageSchema,
  cursorParameters,
  jsonAnswer,
  type RouteDocument,
} from "../docs/route-document.ts";
import { cursorPageNames, readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import { nullableString, stringEnum } from "../schema/field-schemas.ts";
import { formatInstant } from "../schema/utc-instant.ts";

const ledgerEntrySchema = Type.Object({
  type: stringEnum(["grant", "charge", "correction"], {
    description: "`grant` adds credit, `charge` takes it; a `correction` takes granted credit back.",
  }),
  amount: Type.Number({ minimum: 0, description: "How much, USD." }),
  created_at: Type.String({ format: "date-time", description: "When it was written." }),
  generation_id: nullableString({
    description: "The generation that was charged; null for a grant or a correction.",
  }),
  grant_id: nullableString({
    description: "The id that the operator gave the grant or the correction; null for a charge.",
  }),
});

const ledgerSchema = cursorPageSchema(ledgerEntrySchema, "Newest first. Entries never change.");

function toLedgerAnswer({ entries, nextPageToken }: ListLedgerEntriesResponse): Static<typeof ledgerSchema> {
  return { data: entries.map(toEntryBody), next_cursor: nextPageToken || null };
}

function entryTypeOf(type: LedgerEntryType): "grant" | "charge" | "correction" {
  if (type === LedgerEntryType.CORRECTION) return "correction";
  return type === LedgerEntryType.GRANT ? "grant" : "charge";
}

function toEntryBody(entry: LedgerEntry): Static<typeof ledgerEntrySchema> {
  return {
    type: entryTypeOf(entry.type),
    amount: usdNumber(entry.amountNanoUsd),
    created_at: formatInstant(entry.createdAt),
    generation_id: entry.generationId || null,
    grant_id: entry.grantId || null,
  };
}

const exampleMs = Date.UTC(2030, 0, 31, 12);
const example = create(ListLedgerEntriesResponseSchema, {
  entries: [
    {
      createdAt: timestampFromMs(exampleMs),
      type: LedgerEntryType.CHARGE,
      amountNanoUsd: 15_000n,
      generationId: "gen-tts-01JJX5V0Q2",
    },
    {
      createdAt: timestampFromMs(exampleMs - 60_000),
      type: LedgerEntryType.GRANT,
      amountNanoUsd: 25_000_000_000n,
      grantId: "invoice-2030-17",
    },
  ],
});

const document: RouteDocument = {
  id: "listLedgerEntries",
  tag: "Credits",
  summary: "Grants, charges and corrections",
  description:
    "Every movement of the account's credit: grants less corrections and charges are its balance. What costs nothing leaves no entry. Management keys only.",
  parameters: cursorParameters,
  answer: jsonAnswer("A page of the ledger.", "Ledger", ledgerSchema, toLedgerAnswer(example)),
  errors: [400],
};

/** GET /api/v1/credits/ledger: what moved the account's credit, newest first. */
export function ledgerRoute({ credits }: { readonly credits: Client<typeof CreditService> }): Route {
  return serviceRoute({
    method: "GET",
    path: `${apiPath}/credits/ledger`,
    document,
    request: (exchange) => readQuery(exchange, (query) => query.cursorPage()),
    call: credits.listLedgerEntries,
    wireNames: cursorPageNames,
    answer: toLedgerAnswer,
  });
}
