#!/usr/bin/env python3
"""Asks a git server whether a push took effect, for keep-proxy's `exec`.

It reads the refs with git ls-remote, as keep-proxy's own user. git finds its credentials as always:
credential helper, .netrc. Arguments are settings for git, such as http.sslCAInfo=FILE.
"""
import base64, gzip, json, subprocess, sys

NONE = "0" * 40


def packet(text):
    return f"{len(text.encode()) + 4:04x}{text}"


def commands(body):
    """The refs of a push, as (old, new, name), and the capabilities that git named."""
    found, able, at = [], set(), 0
    while (size := int(body[at : at + 4], 16)) != 0:
        line, _, more = body[at + 4 : at + size].partition(b"\0")
        at += size
        able |= set(more.decode().split())
        words = line.decode().rstrip("\n").split(" ", 2)
        if words[0] == "shallow":
            continue
        if len(words) != 3:
            raise ValueError("the push can't be read")
        found.append(tuple(words))
    return found, able


def answer(refs, able):
    """What the server answers to a push that took effect."""
    report = packet("unpack ok\n") + "".join(packet(f"ok {name}\n") for _, _, name in refs) + "0000"
    if "side-band-64k" in able or "side-band" in able:
        report = "".join(packet("\x01" + report[i : i + 900]) for i in range(0, len(report), 900)) + "0000"
    if not able & {"report-status", "report-status-v2"}:
        report = ""
    fields = {"Content-Type": "application/x-git-receive-pack-result", "Cache-Control": "no-cache"}
    return {"status": 200, "headers": fields, "text": report}


def main():
    request = json.load(sys.stdin)["request"]
    body = base64.b64decode(request["base64"]) if "base64" in request else request["body"].encode()
    if "gzip" in "".join(request["headers"].get("Content-Encoding", [])):
        body = gzip.decompress(body)
    refs, able = commands(body)
    url = request["url"].removesuffix("/git-receive-pack")
    settings = [word for one in sys.argv[1:] for word in ("-c", one)]
    asked = subprocess.run(["git", *settings, "ls-remote", url], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if asked.returncode != 0:
        return {"seen": "retry", "reason": asked.stderr.strip()[-300:] or "git ls-remote failed"}
    now = dict(reversed(line.split("\t", 1)) for line in asked.stdout.splitlines())
    is_now = [now.get(name, NONE[: 1] * len(new)) for _, new, name in refs]
    if refs and all(at == new for at, (_, new, _) in zip(is_now, refs)):
        ids = ["; ".join(f"{url} {name} {old}..{new}" for old, new, name in refs)]
        return {"seen": "applied", "reason": "the refs are as pushed", "objects": ids, "result": answer(refs, able)}
    if refs and all(at == old for at, (old, _, _) in zip(is_now, refs)):
        return {"seen": "absent", "reason": "the refs are as before the push"}
    return {"seen": "retry", "reason": "the refs are neither as before the push nor as pushed"}


json.dump(main(), sys.stdout)
