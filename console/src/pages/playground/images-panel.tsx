import { useState } from "react";
import { QueryView } from "../../kit/query-view.tsx";
import { SelectField } from "../../kit/select-field.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { CallButtons } from "./call-buttons.tsx";
import { imagesCode } from "./call-code.ts";
import { CallCodeCard } from "./call-code-card.tsx";
import { type ImageFields, imageChoices, imagesRequest } from "./image-fields.ts";
import { type ImageRun, type ImagesRequest, runImages } from "./image-run.ts";
import { ImagesOutcome } from "./images-outcome.tsx";
import { type ImageModel, mostOf, useImageModels } from "./models.ts";
import { mostImagesCost } from "./most-cost.ts";
import { MostCostText } from "./most-cost-text.tsx";
import { NoModels } from "./no-models.tsx";
import { dataUrlOf, ReferencesField } from "./references-field.tsx";
import { useChosen } from "./use-chosen.ts";
import { useRun } from "./use-run.ts";

const firstFields: ImageFields = {
  prompt: "A lighthouse on a cliff at dusk, two sailing boats, a crescent moon",
  size: "auto",
  ratio: "3:2",
  quality: "auto",
  format: "webp",
  n: "1",
};

/** Images, with all that can be set. */
export function ImagesPanel() {
  const models = useImageModels();
  return (
    <QueryView query={models} lines={8}>
      {(all) => {
        const [first] = all;
        return first === undefined ? (
          <NoModels verb="draws" />
        ) : (
          <ImagesForm models={[first, ...all.slice(1)]} />
        );
      }}
    </QueryView>
  );
}

function ImagesForm({ models }: { models: readonly [ImageModel, ...ImageModel[]] }) {
  const [model, choose] = useChosen(models);
  const [fields, setFields] = useState(firstFields);
  const [files, setFiles] = useState<readonly File[]>([]);
  const { run, start, cancel } = useRun<ImagesRequest, ImageRun>(runImages);
  const most = mostOf(model, "input_references");
  const references = files.slice(0, most);
  const request = imagesRequest(model, fields);
  const asked = {
    n: request.n ?? 1,
    references: references.length,
    quality: request.quality ?? "auto",
    resolution: request.resolution ?? "auto",
    size: request.size ?? "auto",
  };
  const startWith = async () => {
    const urls = await Promise.all(references.map(dataUrlOf));
    const input_references = urls.map((url) => ({ type: "image_url" as const, image_url: { url } }));
    start(input_references.length > 0 ? { ...request, input_references } : request);
  };
  const named = references.map(({ name, type: mediaType }) => ({ name, mediaType }));
  return (
    <div className="playground-pair">
      <section className="card" aria-labelledby="images-call">
        <h2 id="images-call">What to draw</h2>
        <FieldsOfImages {...{ models, model, choose, fields, setFields }} />
        {most > 0 && <ReferencesField files={references} most={most} onChange={setFiles} />}
        <CallButtons
          verb="Draw"
          isRunning={run?.state === "running"}
          isDisabled={fields.prompt.trim() === ""}
          onStart={() => void startWith()}
          onCancel={cancel}
        >
          <MostCostText most={mostImagesCost(model.prices, asked)} prices={model.prices[0] ?? []} />
        </CallButtons>
      </section>
      <ImagesOutcome run={run} />
      <CallCodeCard id="images-code" codeOf={(target) => imagesCode(target, request, named)} />
    </div>
  );
}

interface FieldsOfImagesProps {
  readonly models: readonly ImageModel[];
  readonly model: ImageModel;
  readonly choose: (id: string) => void;
  readonly fields: ImageFields;
  readonly setFields: (fields: ImageFields) => void;
}

const fieldNames = [
  ["size", "Size"],
  ["ratio", "Ratio"],
  ["quality", "Quality"],
  ["format", "Format"],
  ["n", "How many"],
] as const;

function FieldsOfImages({ models, model, choose, fields, setFields }: FieldsOfImagesProps) {
  const choices = imageChoices(model, fields);
  const options = models.map(({ id, name }) => ({ id, title: `${name} (${id})` }));
  return (
    <>
      <TextField
        label="Prompt"
        lines={4}
        value={fields.prompt}
        onChange={(prompt) => setFields({ ...fields, prompt })}
      />
      <SelectField label="Model" options={options} value={model.id} onChange={choose} />
      <div className="fields">
        {fieldNames.map(([name, label]) => (
          <SelectField
            key={name}
            label={label}
            options={choices[name].options}
            value={choices[name].value}
            isDisabled={choices[name].options.length < 2}
            onChange={(value) => setFields({ ...fields, [name]: value })}
          />
        ))}
      </div>
    </>
  );
}
