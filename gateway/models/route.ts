import type { Client } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { ImageModel } from "../../gen/media/image/v1/image_pb.ts";
import type { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import type { SpeechModel } from "../../gen/media/speech/v1/speech_pb.ts";
import type { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { apiPath } from "../docs/openapi.ts";
import { sendJson } from "../http/answer.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Route } from "../http/route.ts";
import { callService } from "../http/service-call.ts";
import {
  imageEndpointsDocument,
  imageModelsDocument,
  modelCountDocument,
  modelDocument,
  modelEndpointsDocument,
  modelsDocument,
  providersDocument,
  retrieveModelDocument,
  userModelsDocument,
} from "./document.ts";
import { toImageModelEndpoints, toSpeechModelEndpoints } from "./endpoints.ts";
import { toImageEndpointList, toImageModelList } from "./image-list.ts";
import { toModels } from "./list.ts";
import { toProviderList } from "./provider-list.ts";
import { type Modality, readModelQuery, toModelPage, wantedModalities } from "./query.ts";

interface ModelsDependencies {
  speech: Client<typeof SpeechService>;
  image: Client<typeof ImageService>;
}

const bothMedia: ReadonlySet<Modality> = new Set<Modality>(["speech", "image"]);
const route = { method: "GET", operation: "management", access: "any" } as const;

/** What can be used now: models of both media, their endpoints and providers. */
export function modelRoutes(dependencies: ModelsDependencies): readonly Route[] {
  return [
    listRoute(dependencies, `${apiPath}/models`, modelsDocument),
    listRoute(dependencies, `${apiPath}/models/user`, userModelsDocument),
    ...modelDetailRoutes(dependencies),
    ...retrieveRoutes(dependencies),
    ...imageModelRoutes(dependencies),
  ];
}

function listRoute(
  dependencies: ModelsDependencies,
  path: string,
  document: NonNullable<Route["document"]>,
): Route {
  return {
    ...route,
    path,
    document,
    async handle(exchange) {
      const query = readModelQuery(exchange);
      const [speech, images] = await modelsOf(dependencies, exchange, query.wanted);
      const models = toModels(speech, images, apiPath).filter(query.matches);
      await sendJson(exchange, 200, toModelPage(models, query, exchange.request.url ?? ""));
    },
  };
}

function modelDetailRoutes(dependencies: ModelsDependencies): readonly Route[] {
  return [
    {
      ...route,
      path: `${apiPath}/models/count`,
      document: modelCountDocument,
      async handle(exchange) {
        const models = await modelsOf(dependencies, exchange, wantedModalities(exchange.query));
        await sendJson(exchange, 200, { data: { count: models.flat().length } });
      },
    },
    {
      ...route,
      path: `${apiPath}/model/:author/:slug`,
      document: modelDocument,
      async handle(exchange) {
        const [speech, images] = await modelsOf(dependencies, exchange);
        const data = find(toModels(speech, images, apiPath), exchange);
        await sendJson(exchange, 200, { data });
      },
    },
    {
      ...route,
      path: `${apiPath}/models/:author/:slug/endpoints`,
      document: modelEndpointsDocument,
      async handle(exchange) {
        const models = await modelsOf(dependencies, exchange);
        const model = find(models.flat(), exchange);
        const isSpeech = model.$typeName === "media.speech.v1.SpeechModel";
        await sendJson(
          exchange,
          200,
          isSpeech ? toSpeechModelEndpoints(model) : toImageModelEndpoints(model),
        );
      },
    },
    {
      ...route,
      path: `${apiPath}/providers`,
      document: providersDocument,
      async handle(exchange) {
        const models = await modelsOf(dependencies, exchange);
        await sendJson(exchange, 200, toProviderList(models.flat()));
      },
    },
  ];
}

/** One operation, whose id has its slash as it stands or encoded. */
function retrieveRoutes(dependencies: ModelsDependencies): readonly Route[] {
  const handle: Route["handle"] = async (exchange) => {
    const [speech, images] = await modelsOf(dependencies, exchange);
    await sendJson(exchange, 200, find(toModels(speech, images, apiPath), exchange));
  };
  return [
    { ...route, path: `${apiPath}/models/:author/:slug`, document: retrieveModelDocument, handle },
    { ...route, path: `${apiPath}/models/:id`, handle },
  ];
}

function imageModelRoutes(dependencies: ModelsDependencies): readonly Route[] {
  const imageModels = async (exchange: Exchange) =>
    (await modelsOf(dependencies, exchange, new Set<Modality>(["image"])))[1];
  return [
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
        await sendJson(exchange, 200, toImageEndpointList(find(await imageModels(exchange), exchange)));
      },
    },
  ];
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

/** The model that the path names. Throws model_unknown. */
function find<M extends { readonly id: string }>(models: readonly M[], { parameters }: Exchange): M {
  const { author, slug, id = `${author}/${slug}` } = parameters;
  const model = models.find((one) => one.id === id);
  if (model === undefined) throw new DomainError(ErrorReason.MODEL_UNKNOWN, "no such model");
  return model;
}
