import Type from "typebox";
import type { NamedSchema, ParameterDocument, RouteDocument } from "../docs/route-document.ts";
import { modelEndpointsSchema } from "./endpoints.ts";
import { imageEndpointListSchema, imageModelListSchema } from "./image-list.ts";
import { modelSchema } from "./list.ts";
import { providerListSchema } from "./provider-list.ts";
import { modelListSchema, modelQueryParameters, outputModalitiesParameter } from "./query.ts";

const namePart = (
  name: string,
  description: string,
  example: NonNullable<ParameterDocument["example"]>,
): ParameterDocument => ({
  name,
  in: "path",
  description,
  schema: Type.String({ minLength: 1 }),
  example,
});

/** The two parts of a model's id in a path. */
const idParameters = [
  namePart("author", "What stands before the slash in a model's id.", ({ image }) => partOf(image.model, 0)),
  namePart("slug", "What stands behind it.", ({ image }) => partOf(image.model, 1)),
];

function partOf(model: string, index: 0 | 1): string {
  return model.split("/")[index] ?? "";
}

const answer = (description: string, schema: NamedSchema): RouteDocument["answer"] => ({
  description,
  content: { "application/json": { schema } },
});

/** What the OpenAPI document says of GET /models. */
export const modelsDocument: RouteDocument = {
  id: "listModels",
  tag: "Models",
  summary: "Models of both media",
  description:
    "Lists what can be used now: speech models with voices, formats, longest input and prices, and image models.",
  parameters: modelQueryParameters,
  answer: answer("The models.", { name: "ModelList", schema: modelListSchema }),
  errors: [400, 401, 500],
};

/** What it says of GET /models/user. */
export const userModelsDocument: RouteDocument = {
  ...modelsDocument,
  id: "listUserModels",
  summary: "Models that the key's account may use",
  description: "The same as GET /models: every account may use every model.",
};

/** What it says of GET /models/count. */
export const modelCountDocument: RouteDocument = {
  id: "countModels",
  tag: "Models",
  summary: "How many models there are",
  description: "Counts what GET /models lists.",
  parameters: [outputModalitiesParameter],
  answer: answer("How many.", {
    name: "ModelCount",
    schema: Type.Object({ data: Type.Object({ count: Type.Integer({ minimum: 0 }) }) }),
  }),
  errors: [400, 401, 500],
};

/** What it says of GET /models/{author}/{slug}. */
export const retrieveModelDocument: RouteDocument = {
  id: "retrieveModel",
  tag: "Models",
  summary: "A model",
  description: "The model's item of GET /models. The slash of its id may also be written as `%2F`.",
  parameters: idParameters,
  answer: answer("The model.", { name: "Model", schema: modelSchema }),
  errors: [401, 404, 500],
};

/** What it says of GET /model/{author}/{slug}. */
export const modelDocument: RouteDocument = {
  id: "getModel",
  tag: "Models",
  summary: "One model",
  description: "As GET /models lists it, within `data`.",
  parameters: idParameters,
  answer: answer("The model.", { name: "WrappedModel", schema: Type.Object({ data: modelSchema }) }),
  errors: [401, 404, 500],
};

/** What it says of GET /models/{author}/{slug}/endpoints. */
export const modelEndpointsDocument: RouteDocument = {
  id: "listModelEndpoints",
  tag: "Models",
  summary: "Endpoints of a model",
  description: "Lists who offers a model of either medium.",
  parameters: idParameters,
  answer: answer("The endpoints.", { name: "ModelEndpoints", schema: modelEndpointsSchema }),
  errors: [401, 404, 500],
};

/** What it says of GET /providers. */
export const providersDocument: RouteDocument = {
  id: "listProviders",
  tag: "Models",
  summary: "Providers",
  description: "Lists who serves any model now.",
  answer: answer("The providers.", { name: "ProviderList", schema: providerListSchema }),
  errors: [401, 500],
};

/** What it says of GET /images/models. */
export const imageModelsDocument: RouteDocument = {
  id: "listImageModels",
  tag: "Images",
  summary: "Image models",
  description:
    "Lists the image models that can be used now, and what can be set on at least one endpoint of each.",
  answer: answer("The models.", { name: "ImageModelList", schema: imageModelListSchema }),
  errors: [401, 500],
};

/** What it says of GET /images/models/{author}/{slug}/endpoints. */
export const imageEndpointsDocument: RouteDocument = {
  id: "listImageEndpoints",
  tag: "Images",
  summary: "Endpoints of an image model",
  description: "Lists who offers a model, with what can be set there and what it costs.",
  parameters: idParameters,
  answer: answer("The endpoints.", { name: "ImageEndpointList", schema: imageEndpointListSchema }),
  errors: [401, 404, 500],
};
