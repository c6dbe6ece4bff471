import type { GenerationFinished, GenerationStarted, ImageStart } from "../../gen/media/image/v1/image_pb.ts";
import type { AnswerWriter } from "../http/back-pressure.ts";
import { type ImageAnswer, imageHeaders, type Written } from "./answer.ts";
import { Base64Stream } from "./base64-stream.ts";
import type { ImageForm } from "./form.ts";

/**
 * A generation as one JSON object, written while its images arrive: headers go out with the first image, previews and
 * texts are left out.
 */
export class ImageJson implements ImageAnswer {
  readonly #writer: AnswerWriter;
  readonly #started: GenerationStarted;
  readonly #form: ImageForm["json"];
  readonly #base64 = new Base64Stream();

  constructor(writer: AnswerWriter, started: GenerationStarted, { json }: ImageForm) {
    this.#writer = writer;
    this.#started = started;
    this.#form = json;
  }

  partial(): undefined {}

  text(): undefined {}

  imageStart(start: ImageStart): Written {
    const { response } = this.#writer;
    const isFirst = !response.headersSent;
    if (isFirst) response.writeHead(200, imageHeaders(this.#started, "application/json"));
    return this.#writer.write((isFirst ? this.#form.start : ",") + this.#form.itemHead(start));
  }

  imageData(bytes: Uint8Array): Written {
    return this.#writer.writeAll(this.#base64.push(bytes));
  }

  imageEnd(): Written {
    return this.#writer.write(`${this.#base64.end()}"}`, "latin1");
  }

  async end(finished: GenerationFinished): Promise<void> {
    await this.#writer.write(this.#form.end(finished));
    this.#writer.response.end();
  }

  dispose(): void {}
}
