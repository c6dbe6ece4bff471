import type { Client } from "@connectrpc/connect";
import Type from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { ImageModel } from "../../gen/media/image/v1/image_pb.ts";
import type { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import type { ProviderState } from "../../gen/media/routing/v1/provider_state_pb.ts";
import type { SpeechModel } from "../../gen/media/speech/v1/speech_pb.ts";
import type { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { apiPath } from "../docs/openapi.ts";
import {
  documentsOf,
  jsonAnswer,
  type ParameterDocument,
  type RouteDocument,
} from "../docs/route-document.ts";
import { sendJson } from "../http/answer.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Route } from "../http/route.ts";
import { callService } from "../http/service-call.ts";
import { modelEndpointsSchema, toImageModelEndpoints, toSpeechModelEndpoints } from "./endpoints.ts";
import {
  imageEndpointListSchema,
  imageModelListSchema,
  toImageEndpointList,
  toImageModelList,
} from "./image-list.ts";
import { modelSchema, toModels } from "./list.ts";
import { providerListSchema, toProviderList } from "./provider-list.ts";
import {
  type Modality,
  modelListSchema,
  modelQueryParameters,
  outputModalitiesParameter,
  readModelQuery,
  toModelPage,
  wantedModalities,
} from "./query.ts";

/** A part of a model's id in a path. */
const idPart = (name: string, index: 0 | 1, description: string): ParameterDocument => ({
  name,
  in: "path",
  description,
  schema: Type.String({ minLength: 1 }),
  example: ({ image }) => image.model.split("/")[index] ?? "",
});

const idParameters = [
  idPart("author", 0, "What stands before the slash in a model's id."),
  idPart("slug", 1, "What stands behind it."),
];

const modelCountSchema = Type.Object({ data: Type.Object({ count: Type.Integer({ minimum: 0 }) }) });
const listDocument = {
  parameters: modelQueryParameters,
  answer: jsonAnswer("The models.", "ModelList", modelListSchema),
};

const documents = documentsOf("Models", {
  listModels: {
    summary: "Models of both media",
    description:
      "Lists what can be used now: speech models with voices, formats, longest input and prices, and image models.",
    ...listDocument,
  },
  listUserModels: {
    ...listDocument,
    summary: "Models that the key's account may use",
    description: "The same as GET /models: every account may use every model.",
  },
  countModels: {
    summary: "How many models there are",
    description: "Counts what GET /models lists.",
    parameters: [outputModalitiesParameter],
    answer: jsonAnswer("How many.", "ModelCount", modelCountSchema),
  },
  retrieveModel: {
    summary: "A model",
    description: "The model's item of GET /models. The slash of its id may also be written as `%2F`.",
    parameters: idParameters,
    answer: jsonAnswer("The model.", "Model", modelSchema),
  },
  getModel: {
    summary: "One model",
    description: "As GET /models lists it, within `data`.",
    parameters: idParameters,
    answer: jsonAnswer("The model.", "WrappedModel", Type.Object({ data: modelSchema })),
  },
  listModelEndpoints: {
    summary: "Endpoints of a model",
    description: "Lists who offers a model of either medium, and how each has lately fared.",
    parameters: idParameters,
    answer: jsonAnswer("The endpoints.", "ModelEndpoints", modelEndpointsSchema),
  },
  listProviders: {
    summary: "Providers",
    description:
      "Lists who offers models, on or off: whose key opens each for your account, and how it has lately fared.",
    answer: jsonAnswer("The providers.", "ProviderList", providerListSchema),
  },
  listImageModels: {
    tag: "Images",
    summary: "Image models",
    description:
      "Lists the image models that can be used now, and what can be set on at least one endpoint of each.",
    answer: jsonAnswer("The models.", "ImageModelList", imageModelListSchema),
  },
  listImageEndpoints: {
    tag: "Images",
    summary: "Endpoints of an image model",
    description: "Lists who offers a model, with what can be set there and what it costs.",
    parameters: idParameters,
    answer: jsonAnswer("The endpoints.", "ImageEndpointList", imageEndpointListSchema),
  },
});

interface ModelsDependencies {
  speech: Client<typeof SpeechService>;
  image: Client<typeof ImageService>;
}

const bothMedia: ReadonlySet<Modality> = new Set<Modality>(["speech", "image"]);
const imagesAlone: ReadonlySet<Modality> = new Set<Modality>(["image"]);

/** What can be used now: models of both media, their endpoints and providers. */
export function modelRoutes(dependencies: ModelsDependencies): readonly Route[] {
  const shown = async (exchange: Exchange, wanted?: ReadonlySet<Modality>) =>
    toModels(...(await modelsOf(dependencies, exchange, wanted)), apiPath);
  const images = async (exchange: Exchange) => (await modelsOf(dependencies, exchange, imagesAlone))[1];
  const page = async (exchange: Exchange) => {
    const query = readModelQuery(exchange);
    const models = (await shown(exchange, query.wanted)).filter(query.matches);
    return toModelPage(models, query, exchange.request.url ?? "");
  };
  const retrieve = async (exchange: Exchange) => find(await shown(exchange), exchange);
  return [
    getRoute("/models", documents.listModels, page),
    getRoute("/models/user", documents.listUserModels, page),
    getRoute("/models/count", documents.countModels, async (exchange) => {
      const models = await modelsOf(dependencies, exchange, wantedModalities(exchange.query));
      return { data: { count: models.flat().length } };
    }),
    getRoute("/model/:author/:slug", documents.getModel, async (exchange) => ({
      data: await retrieve(exchange),
    })),
    getRoute("/models/:author/:slug/endpoints", documents.listModelEndpoints, async (exchange) => {
      const model = find((await modelsOf(dependencies, exchange)).flat(), exchange);
      const isSpeech = model.$typeName === "media.speech.v1.SpeechModel";
      return isSpeech ? toSpeechModelEndpoints(model) : toImageModelEndpoints(model);
    }),
    getRoute("/providers", documents.listProviders, async (exchange) =>
      toProviderList(await providersOf(dependencies, exchange)),
    ),
    // One operation, whose id has its slash as it stands or encoded.
    getRoute("/models/:author/:slug", documents.retrieveModel, retrieve),
    getRoute("/models/:id", undefined, retrieve),
    getRoute("/images/models", documents.listImageModels, async (exchange) =>
      toImageModelList(await images(exchange), apiPath),
    ),
    getRoute("/images/models/:author/:slug/endpoints", documents.listImageEndpoints, async (exchange) =>
      toImageEndpointList(find(await images(exchange), exchange)),
    ),
  ];
}

function getRoute(
  path: string,
  document: RouteDocument | undefined,
  answer: (exchange: Exchange) => Promise<unknown>,
): Route {
  return {
    method: "GET",
    path: apiPath + path,
    operation: "management",
    access: "any",
    ...(document === undefined ? {} : { document }),
    handle: async (exchange) => sendJson(exchange, 200, await answer(exchange)),
  };
}

/** The models that give some of these, by medium. */
function modelsOf(
  { speech, image }: ModelsDependencies,
  exchange: Exchange,
  wanted: ReadonlySet<Modality> = bothMedia,
): Promise<[readonly SpeechModel[], readonly ImageModel[]]> {
  return Promise.all([
    wanted.has("speech")
      ? callService(exchange, (options) => speech.listSpeechModels({}, options)).then(({ models }) => models)
      : [],
    wanted.has("image")
      ? callService(exchange, (options) => image.listImageModels({}, options)).then(({ models }) => models)
      : [],
  ]);
}

/** Who offers models, by medium. */
async function providersOf(
  { speech, image }: ModelsDependencies,
  exchange: Exchange,
): Promise<ProviderState[]> {
  const answers = await Promise.all([
    callService(exchange, (options) => speech.listSpeechProviders({}, options)),
    callService(exchange, (options) => image.listImageProviders({}, options)),
  ]);
  return answers.flatMap(({ providers }) => providers);
}

/** The model that the path names. Throws model_unknown. */
function find<M extends { readonly id: string }>(models: readonly M[], { parameters }: Exchange): M {
  const { author, slug, id = `${author}/${slug}` } = parameters;
  const model = models.find((one) => one.id === id);
  if (model === undefined) throw new DomainError(ErrorReason.MODEL_UNKNOWN, "no such model");
  return model;
}
