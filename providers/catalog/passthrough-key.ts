/** Names, reduced to small letters and digits, that set what the gateway sets, prices, parses or authenticates by. */
const ownNames: ReadonlySet<string> = new Set([
  ...["model", "modelid", "modelname", "engine", "version"],
  ...["input", "inputs", "text", "transcript", "prompt", "ssml", "messages", "contents", "utterances"],
  ...["voice", "voiceid", "voicename", "referenceid", "speed", "speakingrate", "rate"],
  ...["format", "responseformat", "outputformat", "audioformat", "audioencoding", "encoding", "container"],
  ...["samplerate", "sampleratehertz", "sampleratehz", "channels", "mimetype", "codec"],
  ...["stream", "streaming", "streamformat", "partialimages", "withtimestamps", "syncmode"],
  ...["n", "numimages", "numoutputs", "samplecount", "maximages", "batchsize", "count"],
  ...["size", "imagesize", "width", "height", "resolution", "aspectratio", "quality", "user"],
  ...["auth", "authorization", "token", "accesstoken", "apikey", "key", "secret", "credentials", "headers"],
]);

/** Parts of names that ask the upstream to call an address. */
const addressName = /callback|webhook|notif|posturl|uploadurl/;

/**
 * Whether an endpoint's catalogue entry may let callers pass this parameter to the upstream. Spelling does not matter:
 * `responseFormat`, `response_format` and `Response-Format` are one name.
 */
export function mayPassThrough(key: string): boolean {
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, "");
  return name !== "" && !ownNames.has(name) && !addressName.test(name);
}
