import socket, sys, urllib.parse
method, url = sys.argv[1:3]
at = urllib.parse.urlsplit(url)
data = sys.stdin.buffer.read()
head = f"{method} {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
with socket.create_connection((at.hostname, at.port or 80), 60) as s:
    s.sendall(head.encode() + data)
    while got := s.recv(65536):
        sys.stdout.buffer.write(got)
