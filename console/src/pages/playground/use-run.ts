import { useEffect, useRef, useState } from "react";
import type { Api } from "../../api/api.ts";
import { useApi } from "../../session/session-context.tsx";

/** A call with all its steps, as `runSpeech` and `runImages` are. */
type Runner<Request, Run> = (
  api: Api,
  request: Request,
  signal: AbortSignal,
  tell: (run: Run) => void,
) => Promise<void>;

/** One call at a time, and how it stands. A page that is left cancels it. */
export function useRun<Request, Run>(runner: Runner<Request, Run>) {
  const api = useApi("inference");
  const [run, setRun] = useState<Run>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const start = (request: Request) => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    void runner(api, request, controller.signal, (next) => {
      if (running.current === controller) setRun(next);
    });
  };
  return { run, start, cancel: () => running.current?.abort() };
}
