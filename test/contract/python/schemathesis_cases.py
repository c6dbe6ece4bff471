"""Sends requests that the OpenAPI document calls valid; prints how they were answered and what was refused with 400."""

import json
import sys
from collections import Counter

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode


def main() -> None:
    asked = json.load(sys.stdin)
    schema = schemathesis.openapi.from_dict(asked["document"])
    json.dump([try_operation(result.ok(), asked) for result in schema.get_all_operations()], sys.stdout)


def try_operation(operation, asked) -> dict:
    name = f"{operation.method} {operation.path}"
    fixed = asked["fixed"].get(name, {})
    key = next(key for path, key in asked["keys"].items() if operation.path.startswith(path))
    statuses = Counter()
    refused = []

    @seed(asked["seed"])
    @settings(
        max_examples=asked["examples"],
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def send(case) -> None:
        case.path_parameters = {**(case.path_parameters or {}), **fixed.get("path", {})}
        if isinstance(case.body, dict):
            case.body = {**case.body, **fixed.get("body", {})}
        response = case.call(base_url=asked["baseUrl"], headers={"authorization": f"Bearer {key}"})
        statuses[response.status_code] += 1
        if response.status_code == 400:
            refused.append(response.json())

    send()
    return {"operation": name, "statuses": statuses, "refused": refused}


main()
