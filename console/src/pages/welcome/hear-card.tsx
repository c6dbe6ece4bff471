import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { useObjectUrl } from "../../kit/object-url.ts";
import { TextField } from "../../kit/text-field.tsx";
import { useApi } from "../../session/session-context.tsx";
import { useModelToTry } from "./built-in-model.ts";

const firstWords = "Hello. This was spoken by your own gateway, while you were looking at it.";

/** Speaks a text at once. */
export function HearCard() {
  const api = useApi("inference");
  const model = useModelToTry("speech");
  const [input, setInput] = useState(firstWords);
  const speech = useMutation({
    mutationFn: (request: { model: string; input: string }) =>
      answerOf(api.POST("/audio/speech", { body: request, parseAs: "blob" })),
  });
  const url = useObjectUrl(speech.data);
  const id = model.data?.id;
  return (
    <section className="card hear" aria-labelledby="hear">
      <div className="card-head">
        <h2 id="hear">Hear it</h2>
        <code className="soft">{id}</code>
      </div>
      <TextField label="Text" lines={3} value={input} onChange={setInput} maxLength={500} />
      <div className="row">
        <ActionButton
          look="primary"
          isDisabled={id === undefined || input.trim() === ""}
          isPending={speech.isPending}
          onPress={() => id !== undefined && speech.mutate({ model: id, input })}
        >
          {speech.isPending ? "Speaking …" : "Speak"}
        </ActionButton>
      </div>
      <div className="outcome">
        {url !== undefined && (
          // biome-ignore lint/a11y/useMediaCaption: what it says stands in the field above.
          <audio controls autoPlay src={url} aria-label="What was spoken" />
        )}
        {speech.error !== null && <FailureNotice failure={speech.error} />}
        {model.error !== null && <FailureNotice failure={model.error} onRetry={() => void model.refetch()} />}
        {model.data === null && <p className="soft">No model speaks here yet: switch a provider on below.</p>}
      </div>
    </section>
  );
}
