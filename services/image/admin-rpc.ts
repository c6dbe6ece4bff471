import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ImageAdminService } from "../../gen/media/image/v1/image_admin_service_pb.ts";
import { operatorOf } from "../../lib/identity/caller.ts";
import { requestLogKey } from "../../lib/rpc/request-context.ts";
import type { RecordProviderTest } from "../../lib/service/open-generation.ts";
import type { ImageEndpoint } from "../../providers/catalog/catalog.ts";
import { ProviderTests, type TestedMedium } from "../../providers/routing/provider-test.ts";
import { beginDrawing } from "./drawing.ts";
import type { GenerateDependencies } from "./generate.ts";
import type { ImageRequest } from "./image-request.ts";
import { mostCostOf } from "./plan.ts";
import type { DecodeRoom } from "./references/decode-budget.ts";
import { offeredTiers, type SizeRequest } from "./size.ts";

/** Longest test, milliseconds: an image of any vendor is there by then, or nobody waits for it. */
const maxTestMs = 120_000;

interface ImageAdminDependencies
  extends Pick<GenerateDependencies, "catalog" | "providers" | "clock" | "limits"> {
  readonly record: RecordProviderTest;
  /** Where a call's images are decoded. */
  roomOf(context: HandlerContext): DecodeRoom;
}

/** The handlers of ImageAdminService. */
export function createAdminHandlers(
  dependencies: ImageAdminDependencies,
): ServiceImpl<typeof ImageAdminService> {
  const { catalog, providers, clock, limits, record, roomOf } = dependencies;
  const operatorKeys = (slug: string) => providers.operatorKeys(slug);
  const timeoutMs = Math.min(limits.timeoutMs, maxTestMs);
  const tests = new ProviderTests({ operatorKeys, record, clock, timeoutMs });
  return {
    async testImageProvider({ providerSlug, operatorKey }, context) {
      const asked = { operator: operatorOf(context), providerSlug, operatorKey };
      const room = roomOf(context);
      const medium: TestedMedium<ImageEndpoint> = {
        name: "image",
        endpoints: catalog.imageModels().flatMap(({ endpoints }) => endpoints),
        canTry: () => true,
        mostCost: (endpoint) => mostCostOf(endpoint, smallestRequest(endpoint)),
        async *outputs(endpoint, bounds) {
          const request = smallestRequest(endpoint);
          const limits = { ...bounds, startByMs: Infinity };
          const { outputs } = await beginDrawing(
            endpoint,
            request,
            { references: [] },
            { providers, room, clock },
            limits,
          );
          yield* { [Symbol.asyncIterator]: () => outputs };
        },
      };
      return { report: await tests.run(asked, medium, context.signal, context.values.get(requestLogKey)) };
    },
  };
}

function smallestRequest({ model, image }: ImageEndpoint): ImageRequest {
  return {
    model,
    prompt: "A dot",
    size: smallestSize(image),
    background: "auto",
    references: [],
    n: 1,
    compression: undefined,
    format: image.formats[0] ?? "png",
    quality: "low",
    seed: undefined,
    stream: false,
    preferences: undefined,
  };
}

function smallestSize(image: ImageEndpoint["image"]): SizeRequest {
  const { sizes } = image;
  const area = ({ width, height }: { width: number; height: number }) => width * height;
  const listed = sizes.kind === "grid" ? [] : sizes.sizes.toSorted((one, other) => area(one) - area(other));
  const [resolution] = offeredTiers(image);
  return {
    aspectRatio: undefined,
    resolution: listed.length > 0 ? undefined : resolution,
    pixels: listed[0],
  };
}
