import sys, requests
method, url = sys.argv[1:3]
data = sys.stdin.buffer.read() if method == "POST" else None
a = requests.request(method, url, data=data, headers={"Content-Type": "application/json"})
print("STATUS", a.status_code)
for name, value in a.headers.items():
    print(f"{name}: {value}")
print(a.text)
