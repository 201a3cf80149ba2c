import sys, urllib.error, urllib.request
method, url = sys.argv[1:3]
if sys.argv[3:] == ["direct"]:
    urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))
data = sys.stdin.buffer.read() if method == "POST" else None
q = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
try:
    a = urllib.request.urlopen(q)
except urllib.error.HTTPError as e:
    a = e
print("STATUS", a.status)
print(a.headers)
print(a.read().decode())
