import sys, httpx
method, url = sys.argv[1:3]
data = sys.stdin.buffer.read() if method == "POST" else None
a = httpx.request(method, url, content=data, headers={"Content-Type": "application/json"}, timeout=60)
print("STATUS", a.status_code)
for name, value in a.headers.items():
    print(f"{name}: {value}")
print(a.text)
