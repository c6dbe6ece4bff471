"""Has webuiapi, a client of AUTOMATIC1111's web UI, draw, look on and interrupt; prints what it got as JSON."""

import json
import sys
import threading
import time

import webuiapi

given = json.load(sys.stdin)
host, port = given["baseUrl"].removeprefix("http://").split(":")
user, password = given["auth"].split(":")


def client():
    api = webuiapi.WebUIApi(host=host, port=int(port), sampler="Euler a", steps=5)
    api.set_auth(user, password)
    return api


def shown(result):
    return [[image.format, *image.size, image.convert("RGB").getpixel((0, 0))[0]] for image in result.images]


def look_on():
    """Draws in another thread, and asks for progress until there is a picture."""
    done = []
    thread = threading.Thread(target=lambda: done.append(client().txt2img(prompt="[[previews=2]]", seed=9)))
    thread.start()
    api, seen = client(), []
    while thread.is_alive():
        progress = api.get_progress()
        if progress["current_image"] is not None:
            seen.append(progress["state"]["job_count"])
        time.sleep(0.01)
    thread.join()
    return {"looks": len(seen), "jobs": sorted(set(seen)), "images": shown(done[0])}


def interrupted():
    done = []
    thread = threading.Thread(target=lambda: done.append(client().txt2img(prompt="[[previews=999]]", seed=8)))
    thread.start()
    api = client()
    while api.get_progress()["state"]["job_count"] == 0:
        time.sleep(0.01)
    api.interrupt()
    thread.join()
    return shown(done[0])


def refused(call):
    try:
        call()
    except RuntimeError as error:
        return list(error.args)
    return None


def refused_password():
    api = client()
    api.set_auth(user, "wrong")
    return refused(lambda: api.txt2img(prompt="A boat."))


first = client().txt2img(prompt="A boat.", seed=7, width=64, height=96, batch_size=2)
print(
    json.dumps(
        {
            "draws": {"images": shown(first), "info": first.info},
            "from image": shown(client().img2img(images=[first.images[0]], prompt="A boat.", seed=3, width=64, height=64)),
            "progress": look_on(),
            "interrupt": interrupted(),
            "wrong password": refused_password(),
            "wrong model": refused(
                lambda: client().txt2img(prompt="A boat.", override_settings={"sd_model_checkpoint": "none"})
            ),
        }
    )
)
