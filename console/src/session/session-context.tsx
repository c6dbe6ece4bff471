import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useSyncExternalStore,
} from "react";
import { type Api, createApi } from "../api/api.ts";
import type { HeldKeys, KeyKind, Session } from "./session.ts";

interface SessionValue {
  readonly session: Session;
  readonly keys: HeldKeys;
  readonly api: Readonly<Record<KeyKind, Api>>;
}

const SessionContext = createContext<SessionValue | undefined>(undefined);

/** Gives the pages the keys of the tab and the interface that is called with them. */
export function SessionProvider({ session, children }: { session: Session; children: ReactNode }) {
  const keys = useSyncExternalStore(session.subscribe, () => session.keys);
  const inference = keys.inference?.secret;
  const management = keys.management?.secret;
  const api = useMemo(
    () => ({
      inference: createApi(session, "inference", inference),
      management: createApi(session, "management", management),
    }),
    [session, inference, management],
  );
  useFreshAnswers(inference, management);
  const value = useMemo(() => ({ session, keys, api }), [session, keys, api]);
  return <SessionContext value={value}>{children}</SessionContext>;
}

/** What another key was answered is no answer to this one. */
function useFreshAnswers(...secrets: readonly (string | undefined)[]): void {
  const queries = useQueryClient();
  const asked = useRef(secrets);
  useEffect(() => {
    if (secrets.every((secret, index) => secret === asked.current[index])) return;
    asked.current = secrets;
    void queries.resetQueries();
  });
}

/** The keys of the tab. */
export function useSession(): SessionValue {
  const value = useContext(SessionContext);
  if (value === undefined) throw new Error("used outside of SessionProvider");
  return value;
}

/** The interface, called with the tab's key of a kind. A page asks for it inside of a KeyGate for that kind. */
export function useApi(kind: KeyKind): Api {
  return useSession().api[kind];
}

/** Whether the tab has a key of the kind that the gateway accepts, as far as it is known. */
export function useIsHeld(kind: KeyKind): boolean {
  const held = useSession().keys[kind];
  return held !== undefined && held.refused === undefined;
}

/** The interface, called with whichever key the tab has, and which that is; undefined without any. */
export function useAnyApi(): { readonly kind: KeyKind; readonly api: Api } | undefined {
  const { keys, api } = useSession();
  const usable = (["management", "inference"] as const).find(
    (kind) => keys[kind] !== undefined && keys[kind].refused === undefined,
  );
  return usable && { kind: usable, api: api[usable] };
}
