import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { imageBlob } from "../../kit/image-blob.ts";
import { MoneyText } from "../../kit/money-text.tsx";
import { useObjectUrl } from "../../kit/object-url.ts";
import { TextField } from "../../kit/text-field.tsx";
import { useApi } from "../../session/session-context.tsx";
import { useModelToTry } from "./built-in-model.ts";

const firstPrompt = "A lighthouse at dusk, calm sea, two sailing boats";

/** Draws a prompt at once. */
export function SeeCard() {
  const api = useApi("inference");
  const model = useModelToTry("image");
  const [prompt, setPrompt] = useState(firstPrompt);
  const drawing = useMutation({
    async mutationFn(request: { model: string; prompt: string }) {
      const body = { ...request, aspect_ratio: "3:2", output_format: "webp" } as const;
      const answer = await answerOf(api.POST("/images", { body }));
      if (!("data" in answer)) throw new Error("asked for no events");
      const { data, usage } = answer;
      return { blob: data[0] && imageBlob(data[0]), prompt: request.prompt, cost: usage?.cost };
    },
  });
  const url = useObjectUrl(drawing.data?.blob);
  const id = model.data?.id;
  const cost = drawing.data?.cost;
  return (
    <section className="card" aria-labelledby="see">
      <div className="card-head">
        <h2 id="see">See it</h2>
        <code className="soft">{id}</code>
      </div>
      <TextField label="Prompt" value={prompt} onChange={setPrompt} maxLength={500} />
      <div className="row">
        <ActionButton
          look="primary"
          isDisabled={id === undefined || prompt.trim() === ""}
          isPending={drawing.isPending}
          onPress={() => id !== undefined && drawing.mutate({ model: id, prompt })}
        >
          {drawing.isPending ? "Drawing …" : "Draw"}
        </ActionButton>
        {cost != null && (
          <span className="soft">
            It cost <MoneyText usd={cost} />
          </span>
        )}
      </div>
      {drawing.error !== null && <FailureNotice failure={drawing.error} />}
      {model.error !== null && <FailureNotice failure={model.error} onRetry={() => void model.refetch()} />}
      {model.data === null && <p className="soft">No model draws here yet: switch a provider on below.</p>}
      <div className="picture">
        {url === undefined ? "The picture comes here" : <img src={url} alt={drawing.data?.prompt} />}
      </div>
    </section>
  );
}
