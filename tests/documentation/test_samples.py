"""The examples of the two JSON contracts are what the customer example prints."""

import json
import os
from pathlib import Path

import pytest
from generation.contracts import COMPARISON_KEYS, NOW, PLAN_KEYS, SAMPLES, comparison_example
from support.documentation.examples import Shell, copy_example

UPDATE = "SNAPLOOM_UPDATE_SAMPLES"
"""Set it to write the documents anew instead of comparing them."""
VARYING = {
    # Plans name the folders of their sources, which are temporary here.
    "hash": "4ce5d97a0a7a7023b1d6bb072aa37ddc12f4581c399ef20b020e67b99706dded",
    "planHash": "4ce5d97a0a7a7023b1d6bb072aa37ddc12f4581c399ef20b020e67b99706dded",
    "runId": "20240315T000000000Z-5be2a84c07d1",
    "storageRunId": "20240315T000000000Z-5be2a84c07d1",
    "startedAt": "2024-03-15T00:00:00.000000000Z",
    "publishedAt": "2024-03-15T00:00:12.000000000Z",
    "finishedAt": "2024-03-15T00:00:12.500000000Z",
    "seconds": 4.25,
    "bytes": 5400,
    "fingerprint": "41156814c0c61117b2b5b86ce8bd62893b063f7a9bd003bbcbab0326924a3748",
    "toolVersion": "0.1.0",
    "sparkVersion": "4.3.0",
    # No key of the example is nearly one of the other side; this shows such a key.
    "unmatched": [
        {
            "child": "customer_address",
            "rows": 1,
            "keys": ["03"],
            "nearMisses": [
                {
                    "normalize": ["STRIP_LEADING_ZEROS"],
                    "rows": 1,
                    "ambiguous": 0,
                    "keys": [{"left": "03", "right": "3"}],
                }
            ],
            "notCounted": "",
        }
    ],
}
"""What no two runs share, and what every document shows in its place."""


@pytest.mark.spark
def test_examples_are_what_the_customer_example_prints(shared_shell: Shell, tmp_path: Path) -> None:
    example = copy_example("customer", tmp_path, shared_shell)
    example.run("python examples/customer/data.py")
    usual = f"customer-wide -f examples/customer --now {NOW} -o json"
    for name, command in {"plan": "plan", "report": "run --limit 1"}.items():
        printed = example.run(f"snaploom {command} {usual}")
        printed = printed.replace(str(example.place), "/tmp/snaploom")
        text = json.dumps(settled(json.loads(printed)), indent=2) + "\n"
        compare(SAMPLES / f"{name}.json", text)


def test_every_key_of_a_plan_is_documented() -> None:
    plan = json.loads((SAMPLES / "plan.json").read_text("utf-8"))
    assert set(keys_of(plan)) <= PLAN_KEYS.keys()
    assert {key for key in PLAN_KEYS if "." not in key} == plan.keys()


def test_every_key_of_a_comparison_is_documented() -> None:
    document = comparison_example().document
    inside_keys = {key for key in keys_of(document) if key.startswith("samples[].key.")}
    assert set(keys_of(document)) - inside_keys == COMPARISON_KEYS.keys()


def compare(path: Path, text: str) -> None:
    if os.environ.get(UPDATE):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text, f"{UPDATE}=1 writes it anew; then `make generate`"


def settled(value: object) -> object:
    if isinstance(value, dict):
        return {key: VARYING.get(key, settled(inner)) for key, inner in value.items()}
    return [settled(inner) for inner in value] if isinstance(value, list) else value


def keys_of(value: object, path: str = "") -> list[str]:
    """Paths of all keys; those of `sources` are field names and not part of the contract."""
    if isinstance(value, list):
        return [key for inner in value for key in keys_of(inner, f"{path}[]")]
    if not isinstance(value, dict) or path.endswith("sources"):
        return []
    names = {name: f"{path}.{name}" if path else name for name in value}
    return [*names.values(), *(k for n, p in names.items() for k in keys_of(value[n], p))]
