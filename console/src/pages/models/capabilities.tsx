import type { ReactNode } from "react";
import { Badge } from "../../kit/badge.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { type AnyApi, isSpeechModel, type Model, type SpeechModel, useImageModel } from "./model-queries.ts";

/** What can be set. */
export function Capabilities({ api, model }: { api: AnyApi; model: Model }) {
  return (
    <section className="card" aria-labelledby="capabilities">
      <h2 id="capabilities">What it can do</h2>
      {isSpeechModel(model) ? (
        <SpeechCapabilities model={model} />
      ) : (
        <ImageCapabilities api={api} model={model} />
      )}
    </section>
  );
}

const whole = new Intl.NumberFormat();

function SpeechCapabilities({ model }: { model: SpeechModel }) {
  const takes = (name: string) => (model.supported_parameters.includes(name) ? "Yes" : "No");
  return (
    <dl className="capabilities">
      <Line name="Longest text">{whole.format(model.max_input_characters)} characters</Line>
      <Line name="Formats">
        <Words words={model.response_formats} />
      </Line>
      <Line name="Speed">{takes("speed")}</Line>
      <Line name="Instructions">{takes("instructions")}</Line>
      <Line name="Voice where none is named">{model.default_voice ?? "None: one must be named"}</Line>
    </dl>
  );
}

function ImageCapabilities({ api, model }: { api: AnyApi; model: Model }) {
  const image = useImageModel(api, model.id);
  return (
    <QueryView query={image} lines={6}>
      {(found) => (
        <dl className="capabilities">
          {Object.entries(found?.supported_parameters ?? {}).map(([name, kind]) => (
            <Line key={name} name={<code>{name}</code>}>
              {kind.type === "enum" && <Words words={kind.values} />}
              {kind.type === "range" && rangeWords(kind.min, kind.max)}
              {kind.type === "boolean" && "Yes"}
            </Line>
          ))}
        </dl>
      )}
    </QueryView>
  );
}

function rangeWords(min: number, max: number): string {
  return min === max ? whole.format(min) : `${whole.format(min)} to ${whole.format(max)}`;
}

function Line({ name, children }: { name: ReactNode; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Words({ words }: { words: readonly string[] }) {
  return (
    <ul className="words">
      {words.map((word) => (
        <li key={word}>
          <Badge>{word}</Badge>
        </li>
      ))}
    </ul>
  );
}
