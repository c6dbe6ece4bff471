import type { FetchResult } from "../../providers/provider-http.ts";
import type { ResultFetches } from "../../providers/upstream/network/fetch-result.ts";

/** For adapters that are answered no addresses: fetching one fails the test. */
export const noResults: FetchResult = () => Promise.reject(new Error("nothing is to be fetched here"));

/** The same for a registry. */
export const noResultFetches: Pick<ResultFetches, "of"> = { of: () => noResults };
