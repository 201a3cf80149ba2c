import asyncio, sys, aiohttp
async def main(method, url):
    data = sys.stdin.buffer.read() if method == "POST" else None
    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.request(method, url, data=data, headers={"Content-Type": "application/json"}) as a:
            print("STATUS", a.status)
            for name, value in a.headers.items():
                print(f"{name}: {value}")
            print(await a.text())
asyncio.run(main(*sys.argv[1:3]))
