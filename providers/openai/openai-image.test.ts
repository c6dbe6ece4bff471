import { startOpenAiUpstream } from "../../test/upstreams/openai/openai.ts";
import { describeCompatibleImage } from "../openai-compatible/image.suite.ts";
import { openai } from "./index.ts";

describeCompatibleImage("OpenAI", {
  manifest: openai,
  startUpstream: startOpenAiUpstream,
  call: { upstreamModel: "gpt-image-1.5", size: { width: 1024, height: 1024 }, quality: "low" },
  formats: ["png", "jpeg", "webp"],
  several: true,
  previews: true,
});
