import type { Client } from "@connectrpc/connect";
import Type from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { ImageModel } from "../../gen/media/image/v1/image_pb.ts";
import type { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import type { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { sendJson } from "../answer.ts";
import type { Exchange } from "../exchange.ts";
import {
  imageEndpointListSchema,
  imageModelListSchema,
  toImageEndpointList,
  toImageModelList,
} from "../image-model-list.ts";
import { type ModelList, modelListSchema, modelSchema, toModelList } from "../model-list.ts";
import { apiPath } from "../openapi.ts";
import type { Route } from "../route.ts";
import type { RouteDocument } from "../route-document.ts";
import { callService } from "../service-call.ts";
import { stringEnum } from "../string-enum.ts";

/** What the lists of models need. */
export interface ModelsDependencies {
  speech: Client<typeof SpeechService>;
  image: Client<typeof ImageService>;
}

const namePart = (name: string, description: string) =>
  ({ name, in: "path", description, schema: Type.String({ minLength: 1 }) }) as const;

const modalities = ["speech", "image"] as const;

type Modality = (typeof modalities)[number];

const modelsDocument: RouteDocument = {
  id: "listModels",
  tag: "Models",
  summary: "Models of both media",
  description:
    "Lists what can be used now: speech models with voices, formats, longest input and prices, and image models.",
  parameters: [
    {
      name: "output_modalities",
      in: "query",
      description: "Only models that give any of these; all without it.",
      schema: Type.Array(stringEnum([...modalities])),
      explode: false,
    },
  ],
  answer: {
    description: "The models.",
    content: { "application/json": { schema: { name: "ModelList", schema: modelListSchema } } },
  },
  errors: [400, 401, 500],
};

const modelParameters: RouteDocument["parameters"] = [
  namePart("author", "What stands before the slash in a model's id."),
  namePart("slug", "What stands behind it."),
];

const modelDocument: RouteDocument = {
  id: "retrieveModel",
  tag: "Models",
  summary: "A model",
  description: "The model's item of GET /models. The slash of its id may also be written as `%2F`.",
  parameters: modelParameters,
  answer: {
    description: "The model.",
    content: { "application/json": { schema: { name: "Model", schema: modelSchema } } },
  },
  errors: [401, 404, 500],
};

const imageModelsDocument: RouteDocument = {
  id: "listImageModels",
  tag: "Images",
  summary: "Image models",
  description:
    "Lists the image models that can be used now, and what can be set on at least one endpoint of each.",
  answer: {
    description: "The models.",
    content: { "application/json": { schema: { name: "ImageModelList", schema: imageModelListSchema } } },
  },
  errors: [401, 500],
};

const imageEndpointsDocument: RouteDocument = {
  id: "listImageEndpoints",
  tag: "Images",
  summary: "Endpoints of an image model",
  description: "Lists who offers a model, with what can be set there and what it costs.",
  parameters: modelParameters,
  answer: {
    description: "The endpoints.",
    content: {
      "application/json": { schema: { name: "ImageEndpointList", schema: imageEndpointListSchema } },
    },
  },
  errors: [401, 404, 500],
};

/** The lists of what can be used now: all models, image models, and the endpoints of one of them. */
export function modelRoutes({ speech, image }: ModelsDependencies): readonly Route[] {
  const imageModels = (exchange: Exchange): Promise<readonly ImageModel[]> =>
    callService(exchange, (options) => image.listImageModels({}, options)).then(({ models }) => models);
  const speechModels = (exchange: Exchange) =>
    callService(exchange, (options) => speech.listSpeechModels({}, options)).then(({ models }) => models);
  const route = { method: "GET", operation: "management", access: "any" } as const;
  return [
    {
      ...route,
      path: `${apiPath}/models`,
      document: modelsDocument,
      async handle(exchange) {
        const wanted = wantedModalities(exchange.query);
        const [ofSpeech, ofImages] = await Promise.all([
          wanted.has("speech") ? speechModels(exchange) : [],
          wanted.has("image") ? imageModels(exchange) : [],
        ]);
        await sendJson(exchange, 200, toModelList(ofSpeech, ofImages));
      },
    },
    ...oneModelRoutes(async (exchange) => {
      const [ofSpeech, ofImages] = await Promise.all([speechModels(exchange), imageModels(exchange)]);
      return toModelList(ofSpeech, ofImages);
    }),
    {
      ...route,
      path: `${apiPath}/images/models`,
      document: imageModelsDocument,
      async handle(exchange) {
        await sendJson(exchange, 200, toImageModelList(await imageModels(exchange), apiPath));
      },
    },
    {
      ...route,
      path: `${apiPath}/images/models/:author/:slug/endpoints`,
      document: imageEndpointsDocument,
      async handle(exchange) {
        const { author, slug } = exchange.parameters;
        const model = (await imageModels(exchange)).find(({ id }) => id === `${author}/${slug}`);
        if (model === undefined) throw new DomainError(ErrorReason.MODEL_UNKNOWN, "no such image model");
        await sendJson(exchange, 200, toImageEndpointList(model));
      },
    },
  ];
}

/** One operation, whose id has its slash as it stands or encoded. */
function oneModelRoutes(listModels: (exchange: Exchange) => Promise<ModelList>): readonly Route[] {
  const route: Omit<Route, "path"> = {
    method: "GET",
    operation: "management",
    access: "any",
    async handle(exchange) {
      const { author, slug, id = `${author}/${slug}` } = exchange.parameters;
      const model = (await listModels(exchange)).data.find((item) => item.id === id);
      if (model === undefined) throw new DomainError(ErrorReason.MODEL_UNKNOWN, "no such model");
      await sendJson(exchange, 200, model);
    },
  };
  return [
    { ...route, path: `${apiPath}/models/:author/:slug`, document: modelDocument },
    { ...route, path: `${apiPath}/models/:id` },
  ];
}

/** Those that `output_modalities` lists, all without it. Throws invalid_body for others. */
function wantedModalities(query: URLSearchParams): ReadonlySet<Modality> {
  const named = query.getAll("output_modalities");
  if (named.length === 0) return new Set(modalities);
  return new Set(
    named
      .flatMap((list) => list.split(","))
      .map((name) => {
        const modality = modalities.find((known) => known === name.trim());
        if (modality !== undefined) return modality;
        const message = `must list any of ${modalities.join(", ")}`;
        throw DomainError.invalid([{ path: "output_modalities", message }]);
      }),
  );
}
