"""Asks a cluster for the config map that a request in protobuf creates."""
import base64, json, ssl, sys, urllib.error, urllib.request


def fields(message):
    """The fields of a protobuf message that are messages or text themselves."""
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    at, found = 0, []
    while at < len(message):
        tag = varint()
        if tag & 7 == 2:
            size = varint()
            found.append((tag >> 3, message[at : at + size]))
            at += size
        elif tag & 7 == 0:
            varint()
        else:
            raise ValueError("a field of another kind")
    return found


request = json.load(sys.stdin)["request"]
body = base64.b64decode(request["base64"]) if "base64" in request else request["body"].encode()
object = dict(fields(dict(fields(body.removeprefix(b"k8s\0")))[2]))
name = dict(fields(object[1]))[1].decode()
data = {}
for number, entry in fields(dict(fields(body.removeprefix(b"k8s\0")))[2]):
    if number == 2:
        pair = dict(fields(entry))
        data[pair[1].decode()] = pair.get(2, b"").decode()
url = request["url"].split("?")[0] + "/" + name
try:
    with urllib.request.urlopen(url, context=ssl.create_default_context(cafile=sys.argv[1])) as answer:
        there = json.load(answer)
except urllib.error.HTTPError as e:
    print(json.dumps({"seen": "retry", "reason": f"the cluster says {e.code}"}))
else:
    if there.get("data") == data:
        print(json.dumps({"seen": "applied", "reason": "it is there", "objects": [url], "result": {"status": 201, "body": there}}))
    else:
        print(json.dumps({"seen": "retry", "reason": "it is there with other data"}))
