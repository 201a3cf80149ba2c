import { EnvHttpProxyAgent, setGlobalDispatcher, fetch } from "undici";
import { readFileSync } from "node:fs";
if (process.argv[4] !== "direct") setGlobalDispatcher(new EnvHttpProxyAgent());
const [method, url] = process.argv.slice(2);
const body = method === "POST" ? readFileSync(0) : undefined;
const a = await fetch(url, { method, body, headers: { "Content-Type": "application/json" } });
console.log("STATUS", a.status);
for (const [name, value] of a.headers) console.log(`${name}: ${value}`);
console.log(await a.text());
