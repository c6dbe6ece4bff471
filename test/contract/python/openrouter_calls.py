"""Calls methods of the `openrouter` package. Each line of stdin asks for one thing as JSON, each line of stdout answers.

{"methods": true} lists the names of all methods; {"base_url", "key", "method", "arguments"} calls one and is answered
{"value"} or {"error": {"status", "name"}}. Whatever the package parses as unknown is an error, too.
"""

import inspect
import json
import sys
import warnings

import httpx
from pydantic import BaseModel

from openrouter import OpenRouter
from openrouter.basesdk import BaseSDK
from openrouter.errors import OpenRouterError
from openrouter.utils import RetryConfig

# The package warns of every word that its lists don't have, such as names of providers.
warnings.simplefilter("ignore")


def methods_of(sdk, prefix=""):
    inner = [name for name, value in vars(sdk).items() if isinstance(value, BaseSDK) and "parent" not in name]
    names = []
    for name in [*getattr(sdk, "_sub_sdk_map", {}), *inner]:
        names += methods_of(getattr(sdk, name), f"{prefix}{name}.")
    own = [name for name, value in vars(type(sdk)).items() if inspect.isfunction(value) and prefix != ""]
    return names + [prefix + name for name in own if not name.startswith("_") and not name.endswith("_async")]


def check_known(value):
    if getattr(value, "is_unknown", False) is True:
        raise ValueError(f"parsed as unknown: {value.raw}")
    children = value if isinstance(value, list) else vars(value).values() if isinstance(value, BaseModel) else ()
    for child in children:
        check_known(child)


def plain(value):
    if isinstance(value, httpx.Response):
        return {"bytes": len(value.read()), "generation_id": value.headers["x-generation-id"]}
    if isinstance(value, BaseModel) and "result" in type(value).model_fields:
        pages = []
        while value is not None:
            pages.append(plain(value.result))
            value = value.next()
        return {"pages": pages}
    if isinstance(value, BaseModel):
        check_known(value)
        return value.model_dump(mode="json", by_alias=True)
    with value as events:
        return {"events": [plain(event) for event in events]}


def call(asked):
    client = OpenRouter(
        api_key=asked["key"],
        server_url=asked["base_url"],
        retry_config=RetryConfig("none", None, False),
        timeout_ms=60_000,
    )
    method = client
    for name in asked["method"].split("."):
        method = getattr(method, name)
    arguments = asked["arguments"]
    if arguments and "request" in inspect.signature(method).parameters:
        arguments = {"request": arguments}
    try:
        return {"value": plain(method(**arguments))}
    except Exception as error:
        status = error.status_code if isinstance(error, OpenRouterError) else 0
        message = f"{error} {error.__cause__ or ''}"
        return {"error": {"status": status, "name": type(error).__name__, "message": message}}


for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps(methods_of(OpenRouter(api_key="none")) if "methods" in question else call(question)))
