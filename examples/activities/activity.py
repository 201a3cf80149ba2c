"""An activity as an engine would start it, again and again: pays one invoice."""

import json
import os
import sys

import keeprun


def pay(workflow_id, activity_id):
    # takeover: the engine started this one, so an earlier run that is still open is over.
    with keeprun.open("Payouts", f"{workflow_id}/{activity_id}", takeover=True) as run:
        answer = run.request("POST", os.environ["DEMO_BANK"] + "/transfers", {
            "from": "alice", "to": "bob", "amount": 1500, "currency": "EUR", "reference": workflow_id,
        })
        if os.environ.get("CRASH"):
            os._exit(1)  # The worker dies with the answer, before the engine has it.
        return answer


if __name__ == "__main__":
    try:
        print(json.dumps(pay(sys.argv[1], "1")))
    except keeprun.Stopped as stopped:
        print(stopped.name, stopped, file=sys.stderr)
        sys.exit(75 if stopped.retry else 1)
