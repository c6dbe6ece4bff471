"""OpenAI's client and LiteLLM at a gateway: prints what each call gave, or which error it raised."""

import base64
import io
import json
import sys

import litellm
import openai

given = json.load(sys.stdin)
base_url = given["baseUrl"]
api_key = given["apiKey"]
png = base64.b64decode(given["png"])
client = openai.OpenAI(base_url=base_url, api_key=api_key)
litellm_at = {"api_base": base_url, "api_key": api_key}


def outcome(call):
    try:
        return call()
    except openai.APIError as error:
        return {
            "raised": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "message": error.message,
            "type": error.type,
            "param": error.param,
            "body": error.body,
        }


def image_file(name="image.png"):
    file = io.BytesIO(png)
    file.name = name
    return file


def starts(image):
    return base64.b64decode(image.b64_json)[:4].hex()


def images(answer):
    return {
        "images": [starts(image) for image in answer.data],
        "size": answer.size,
        "quality": answer.quality,
        "output_format": answer.output_format,
        "usage": answer.usage.to_dict() if hasattr(answer.usage, "to_dict") else answer.usage.model_dump(),
    }


def events(stream):
    return [
        {"kind": type(event).__name__, "type": event.type, "size": event.size, "image": starts(event)}
        for event in stream
    ]


remote = {"model": "openai/gpt-image-1.5", "prompt": "A lighthouse."}
local = {"model": "local/painter", "prompt": "A lighthouse."}
wrong = "[[status=400 code=moderation_blocked]]"

json.dump(
    {
        "generate": outcome(lambda: images(client.images.generate(**remote, n=2, quality="hd", size="1536x1024"))),
        "generate_local": outcome(lambda: images(client.images.generate(**local))),
        "stream": outcome(lambda: events(client.images.generate(**remote, stream=True, partial_images=1))),
        "edit": outcome(lambda: images(client.images.edit(**remote, image=[image_file(), image_file()], mask=image_file()))),
        "edit_stream": outcome(lambda: events(client.images.edit(**remote, image=image_file(), stream=True))),
        "speak": outcome(
            lambda: len(client.audio.speech.create(model="local/flite", voice="alloy", input="Hello.").read())
        ),
        "models": outcome(lambda: [[model.id, model.object, model.owned_by] for model in client.models.list()]),
        "model": outcome(lambda: client.models.retrieve("local/flite").owned_by),
        "refused": outcome(lambda: client.images.generate(model=remote["model"], prompt=wrong)),
        "overloaded": outcome(lambda: client.images.generate(model=remote["model"], prompt="[[status=429]]")),
        "litellm_speech": outcome(
            lambda: len(litellm.speech(model="openai/local/flite", voice="nova", input="Hello.", **litellm_at).read())
        ),
        "litellm_images": outcome(
            lambda: images(
                litellm.image_generation(
                    model="openai/openai/gpt-image-1.5", prompt="A lighthouse.", size="1024x1024", **litellm_at
                )
            )
        ),
        "litellm_images_local": outcome(
            lambda: images(litellm.image_generation(model="openai/local/painter", prompt="A boat.", **litellm_at))
        ),
    },
    sys.stdout,
)
