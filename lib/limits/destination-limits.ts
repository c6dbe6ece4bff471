/** Longest settings of a destination, bytes as JSON. */
export const maxConfigBytes = 65_536;
/** The least share of sessions that may be asked for. */
export const minSamplingRate = 0.0001;
/** Most keys that a destination may be for. */
export const maxKeyHashes = 100;
/** Which part of a list of destinations or deliveries may be asked for. */
export const destinationPage = { maxOffset: 1_000_000_000, limit: { maximum: 100, default: 50 } } as const;

/** Most groups of filter rules, rules of a group, and characters of a text in them. */
export const filterBounds = { groups: 10, rules: 20, textCharacters: 256 } as const;
/** Fields of an event that are texts. */
export const textFields = ["model", "provider", "session_id", "user_id", "api_key_name"] as const;
/** Fields of an event that are numbers. */
export const numberFields = ["total_cost", "total_tokens", "prompt_tokens", "completion_tokens"] as const;
/** Operators that compare nothing. */
export const existenceOperators = ["exists", "not_exists"] as const;
/** Operators on every field. */
export const equalityOperators = ["equals", "not_equals"] as const;
/** Operators on texts alone. */
export const textOperators = ["contains", "not_contains", "starts_with", "ends_with"] as const;
/** Operators on numbers alone. */
export const numberOperators = ["gt", "gte", "lt", "lte"] as const;
