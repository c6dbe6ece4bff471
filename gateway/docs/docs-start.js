/* Runs in the browser: starts the page of the API, with answers that can be looked at and listened to. */
/* global SwaggerUIBundle */

const longestBase64 = 100;
const bytesPerSample = 2;

/** The images in an answer, as JSON or as events, each as the address of an image. */
function imagesIn(contentType, content) {
  if (typeof content !== "string" || !content.includes('"b64_json"')) return [];
  const isEvents = contentType.startsWith("text/event-stream");
  const texts = isEvents ? content.split("\n").map((line) => line.replace(/^data: ?/, "")) : [content];
  return texts.flatMap((text) => {
    const answer = parse(text);
    if (isEvents && !String(answer?.type).endsWith(".completed")) return [];
    return [answer, ...(answer?.data ?? [])].flatMap((item) => toImage(item, answer?.output_format));
  });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function toImage(item, format = "png") {
  if (typeof item?.b64_json !== "string") return [];
  const type = item.media_type ?? (format === "svg" ? "image/svg+xml" : `image/${format}`);
  return [`data:${type};base64,${item.b64_json}`];
}

/** An answer's text with the base64 of its images cut short. */
function withoutImages(content) {
  return content.replace(/("b64_json":\s*")([^"]*)/g, (whole, name, base64) =>
    base64.length > longestBase64 ? `${name}${base64.slice(0, longestBase64)}…` : whole,
  );
}

/** The address of an answer's audio; no browser plays PCM, so it gets the head of a WAV file. */
function audioAddress(contentType, content, headers) {
  if (!contentType.startsWith("audio/pcm")) return URL.createObjectURL(content);
  const head = wavHead(
    content.size,
    Number(headers["x-audio-sample-rate"]),
    Number(headers["x-audio-channels"]),
  );
  return URL.createObjectURL(new Blob([head, content], { type: "audio/wav" }));
}

/** RIFF WAVE, format 1: PCM of 16 bits. */
function wavHead(size, sampleRate, channels) {
  const head = new DataView(new ArrayBuffer(44));
  const words = [
    [0, "RIFF"],
    [8, "WAVE"],
    [12, "fmt "],
    [36, "data"],
  ];
  for (const [at, word] of words)
    for (const [i, c] of [...word].entries()) head.setUint8(at + i, c.charCodeAt(0));
  head.setUint32(4, 36 + size, true);
  head.setUint32(16, 16, true);
  head.setUint16(20, 1, true);
  head.setUint16(22, channels, true);
  head.setUint32(24, sampleRate, true);
  head.setUint32(28, sampleRate * channels * bytesPerSample, true);
  head.setUint16(32, channels * bytesPerSample, true);
  head.setUint16(34, 8 * bytesPerSample, true);
  head.setUint32(40, size, true);
  return head.buffer;
}

/** Puts images above the text of an answer, and a player in the place of its audio. */
function showMedia({ React }) {
  const h = React.createElement;
  const Audio = ({ content, contentType, headers }) => {
    const src = React.useMemo(() => audioAddress(contentType, content, headers), [content]);
    React.useEffect(() => () => URL.revokeObjectURL(src), [src]);
    return h("div", null, h("h5", null, "Response body"), h("audio", { controls: true, src }));
  };
  const Images = ({ sources }) =>
    h(
      "div",
      null,
      sources.map((src, key) => h("img", { key, src, alt: `Image ${key + 1}`, width: 480 })),
    );
  const responseBody = (Original) => (props) => {
    const { content, contentType = "" } = props;
    const sources = React.useMemo(() => imagesIn(contentType, content), [content, contentType]);
    if (contentType.startsWith("audio/") && content instanceof Blob) return h(Audio, props);
    if (sources.length === 0) return h(Original, props);
    return h("div", null, h(Images, { sources }), h(Original, { ...props, content: withoutImages(content) }));
  };
  return { wrapComponents: { responseBody } };
}

// Without the validator, which would send the document to somebody else's service.
SwaggerUIBundle({
  url: "./api/v1/openapi.json",
  dom_id: "#ui",
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  plugins: [showMedia],
});
