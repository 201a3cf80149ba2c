"""An agent loop with two tools over plain HTTP. Nothing in it knows keep-proxy."""

import json
import os
import sys
import urllib.error
import urllib.request

BANK = os.environ["DEMO_BANK"]


def call(url, body=None):
    """One HTTP request; returns what the model sees of the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return {"status": answer.status, "body": json.load(answer)}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": error.read().decode()}
    except OSError as error:
        return {"status": None, "body": str(error)}


def pay(reference, amount):
    return call(BANK + "/transfers", {
        "from": "alice", "to": "bob", "amount": amount, "currency": "EUR", "reference": reference,
    })


def books():
    return call(BANK + "/transfers?reference=" + os.environ["REFERENCE"])


TOOLS = {"pay": pay, "books": books}


def model(seen):
    """Stands in for a language model: pays, looks at the books, and ends.
    After a bad answer it tries again, as models do."""
    if not seen or (seen[-1][0] == "pay" and seen[-1][1]["status"] not in (200, 201)):
        return ("pay", {"reference": os.environ["REFERENCE"], "amount": 1200}) if len(seen) < 5 else None
    if seen[-1][0] == "pay":
        return "books", {}
    return None


def main():
    seen = []
    while (move := model(seen)) is not None:
        tool, arguments = move
        answer = TOOLS[tool](**arguments)
        print(tool, json.dumps(answer), flush=True)
        seen.append((tool, answer))
        if os.environ.get("CRASH_AFTER") == tool:
            os._exit(1)
    return 0 if seen and seen[-1][1]["status"] == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
