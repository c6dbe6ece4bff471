import { useEffect, useState } from "react";
import { EmptyState } from "../../kit/empty-state.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { Notice } from "../../kit/notice.tsx";
import { useObjectUrl } from "../../kit/object-url.ts";
import { CallCost } from "./call-cost.tsx";
import { DownloadLink } from "./download-link.tsx";
import { durationText, Figures } from "./figures.tsx";
import { IgnoredNotice } from "./ignored-notice.tsx";
import type { SpeechRun } from "./speech-run.ts";

/** What is heard, from its first bytes on, and what is to be known of it. */
export function SpeechOutcome({ run }: { run: SpeechRun | undefined }) {
  const live = run?.live;
  const hasEnded = run !== undefined && run.state !== "running";
  useEffect(() => () => live?.close(), [live]);
  useEffect(() => {
    if (run?.state === "cancelled") live?.close();
  }, [run?.state, live]);
  return (
    <section className="card" aria-labelledby="speech-outcome">
      <h2 id="speech-outcome">What is heard</h2>
      {run === undefined ? (
        <EmptyState title="Nothing yet">
          <p>Press Speak: it is heard from its first bytes on, while the rest is being made.</p>
        </EmptyState>
      ) : (
        <>
          <p role="status">{stateWords[run.state]}</p>
          <Player key={live?.url ?? run.generationId ?? ""} run={run} />
          {run.state === "cancelled" && (
            <Notice>The provider may have gone on; what it made may be charged.</Notice>
          )}
          {run.failure !== undefined && <FailureNotice failure={run.failure} />}
          {hasEnded && <IgnoredNotice unheeded={run.unheeded} />}
        </>
      )}
    </section>
  );
}

const stateWords = {
  running: "Speaking …",
  done: "All of it has arrived.",
  cancelled: "Cancelled.",
  failed: "It did not become whole.",
} as const;

function Player({ run }: { run: SpeechRun }) {
  const { live, file, firstByteMs, generationId, state, request } = run;
  const [lengthS, setLengthS] = useState<number>();
  const fileUrl = useObjectUrl(file);
  const [isBroken, setIsBroken] = useState(false);
  const liveUrl = state === "cancelled" || isBroken ? undefined : live?.url;
  const url = liveUrl ?? fileUrl;
  // Samples are heard from elsewhere while they come: here they can be heard again.
  const isHeardElsewhere = live !== undefined && live.url === undefined;
  const extension = request.response_format === "pcm" ? "wav" : "mp3";
  return (
    <>
      {url !== undefined && firstByteMs !== undefined && (
        // biome-ignore lint/a11y/useMediaCaption: what it says stands in the form.
        <audio
          controls
          autoPlay={!isHeardElsewhere && state !== "cancelled"}
          src={url}
          aria-label="What was spoken"
          onDurationChange={({ currentTarget: { duration } }) =>
            setLengthS(Number.isFinite(duration) ? duration : undefined)
          }
          onError={() => setIsBroken(true)}
          onPlay={() => isHeardElsewhere && live.close()}
        />
      )}
      <Figures
        figures={[
          {
            name: "First byte",
            value: firstByteMs === undefined ? "…" : durationText(firstByteMs),
          },
          {
            name: "Length",
            value: state === "running" || lengthS === undefined ? "…" : durationText(lengthS * 1000),
          },
          {
            name: "Cost",
            value: state !== "running" && generationId ? <CallCost generationId={generationId} /> : "…",
          },
        ]}
      />
      {fileUrl !== undefined && (
        <div className="row">
          <DownloadLink url={fileUrl} name={`speech.${extension}`} />
        </div>
      )}
    </>
  );
}
