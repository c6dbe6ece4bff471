import { EmptyState } from "../../kit/empty-state.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { Notice } from "../../kit/notice.tsx";
import { useObjectUrl } from "../../kit/object-url.ts";
import { CallCost } from "./call-cost.tsx";
import { DownloadLink } from "./download-link.tsx";
import { durationText, Figures } from "./figures.tsx";
import { IgnoredNotice } from "./ignored-notice.tsx";
import type { ImageRun } from "./image-run.ts";

/** What is seen, from its first preview on, and what is to be known of it. */
export function ImagesOutcome({ run }: { run: ImageRun | undefined }) {
  return (
    <section className="card" aria-labelledby="images-outcome">
      <h2 id="images-outcome">What is seen</h2>
      {run === undefined ? (
        <EmptyState title="Nothing yet">
          <p>Press Draw: previews come while it is being drawn, where the model makes any.</p>
        </EmptyState>
      ) : (
        <RunOfImages run={run} />
      )}
    </section>
  );
}

function RunOfImages({ run }: { run: ImageRun }) {
  const { state, images, preview, request, failure, unheeded, text } = run;
  const format = request.output_format ?? "png";
  const wanted = request.n ?? 1;
  return (
    <>
      <p role="status">{stateWords(run)}</p>
      <ul className={wanted > 1 ? "gallery several" : "gallery"} aria-label="Images">
        {images.map((image, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an image keeps its place.
          <Picture key={index} blob={image} alt={request.prompt} name={`image-${index + 1}.${format}`} />
        ))}
        {preview !== undefined && <Picture blob={preview} alt={`Preview: ${request.prompt}`} />}
        {state === "running" && preview === undefined && images.length < wanted && (
          <li>
            <span className="skeleton picture" />
          </li>
        )}
      </ul>
      {text !== "" && <p>{text}</p>}
      <FiguresOfImages run={run} />
      {state === "cancelled" && <Notice>The provider may have gone on; what it made may be charged.</Notice>}
      {failure !== undefined && <FailureNotice failure={failure} />}
      {state !== "running" && <IgnoredNotice unheeded={unheeded} />}
    </>
  );
}

function stateWords({ state, images, request: { n = 1 } }: ImageRun): string {
  const made = n > 1 ? ` ${images.length} of ${n} images.` : "";
  const words = { running: "Drawing …", done: "Done.", cancelled: "Cancelled.", failed: "It failed." };
  return words[state] + made;
}

function FiguresOfImages({ run: { state, firstImageMs, previews, generationId } }: { run: ImageRun }) {
  return (
    <Figures
      figures={[
        {
          name: previews > 0 ? "First preview" : "First image",
          value: firstImageMs === undefined ? "…" : durationText(firstImageMs),
        },
        { name: "Previews", value: previews },
        {
          name: "Cost",
          value: state !== "running" && generationId ? <CallCost generationId={generationId} /> : "…",
        },
      ]}
    />
  );
}

/** An image, in an `img` alone: there an SVG's scripts don't run. */
function Picture({ blob, alt, name }: { blob: Blob; alt: string; name?: string }) {
  const url = useObjectUrl(blob);
  return (
    <li>
      {url !== undefined && (
        <img src={url} alt={alt} className={name === undefined ? "is-preview" : undefined} />
      )}
      {url !== undefined && name !== undefined && <DownloadLink url={url} name={name} />}
    </li>
  );
}
