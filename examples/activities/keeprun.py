"""One keep-proxy run around one activity, with the standard library alone.

    with keeprun.open("Payouts", "wf-7/1") as run:
        run.request("POST", url, {"amount": 1200})

The environment names the API: KEEP_ADMIN_URL and KEEP_ADMIN_TOKEN_FILE. The token has the role
host, which decides nothing. It belongs to the worker: keep it out of the activity's sandbox.
"""

import contextlib
import json
import os
import pathlib
import ssl
import urllib.error
import urllib.request


class Stopped(Exception):
    """keep-proxy sent nothing, or doesn't know the outcome of what it sent.

    retry says whether the engine should start the activity again, after retry_after seconds."""

    def __init__(self, problem, status, retry_after=None):
        super().__init__(problem.get("detail") or problem.get("title") or f"status {status}")
        self.problem = problem
        self.name = problem.get("type", "").removeprefix("urn:keep:problem:")
        self.status = status
        self.retry = self.name in RETRY
        self.retry_after = retry_after


# These pass with time: an outcome is being found out, a run of the same item is still open,
# the proxy takes no work now.
RETRY = {"unknown-outcome", "blocked", "run-aborted", "item-busy", "not-sent",
         "ledger-unavailable", "stale", "draining", "overloaded"}


def _direct():
    """An opener that ignores the worker's proxy variables."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _api(path, body):
    token = pathlib.Path(os.environ["KEEP_ADMIN_TOKEN_FILE"]).read_text().strip()
    request = urllib.request.Request(os.environ["KEEP_ADMIN_URL"] + path, json.dumps(body).encode(), {
        "Authorization": "Bearer " + token, "Content-Type": "application/json",
    })
    return _ask(_direct(), request, timeout=60)


def _ask(opener, request, timeout):
    """Returns the answer's JSON, or None. Raises Stopped for a problem that keep-proxy reports."""
    try:
        with opener.open(request, timeout=timeout) as answer:
            content = answer.read()
            return json.loads(content) if content else None
    except urllib.error.HTTPError as error:
        content = error.read()
        if error.headers.get_content_type() == "application/problem+json":
            problem = json.loads(content)
            if problem.get("type", "").startswith("urn:keep:"):
                raise Stopped(problem, error.code, error.headers.get("Retry-After")) from None
        raise


class Run:
    """An open run. Its requests go through the proxy, whatever the environment says."""

    def __init__(self, opened):
        self.id = opened["id"]
        context = ssl.create_default_context(cadata=opened["ca_pem"])
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": opened["proxy_url"], "https": opened["proxy_url"]}),
            urllib.request.HTTPSHandler(context=context),
        )

    def request(self, method, url, body=None, headers=None, timeout=120):
        data = None if body is None else json.dumps(body).encode()
        fields = {"Content-Type": "application/json", **(headers or {})}
        return _ask(self._opener, urllib.request.Request(url, data, fields, method=method), timeout)


@contextlib.contextmanager
def open(workflow, item, **more):
    """Opens a run; finishes it as done, or as failed if the block raises."""
    run = Run(_api("/v1/runs", {"workflow": workflow, "item": item, **more}))
    try:
        yield run
    except BaseException:
        # A stopped run is over already. Then finish is refused, which doesn't matter.
        with contextlib.suppress(Exception):
            _api(f"/v1/runs/{run.id}/finish", {"outcome": "failed"})
        raise
    _api(f"/v1/runs/{run.id}/finish", {"outcome": "done"})
