import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { CreditService } from "../../gen/media/account/v1/credit_service_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { DestinationAdminService } from "../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { ImageAdminService } from "../../gen/media/image/v1/image_admin_service_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { SpeechAdminService } from "../../gen/media/speech/v1/speech_admin_service_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { UsageAdminService } from "../../gen/media/usage/v1/usage_admin_service_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";

/** Every service of ours; a test compares it with the access table. */
export const rpcServices: readonly DescService[] = [
  AccountAdminService,
  AccountInternalService,
  CreditService,
  KeyService,
  ProviderKeyService,
  DestinationAdminService,
  DestinationService,
  ImageAdminService,
  ImageService,
  SpeechAdminService,
  SpeechService,
  UsageAdminService,
  UsageService,
];

/** `media.speech.v1.SpeechService/Synthesize`. */
export function rpcOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}
