import axios from "axios";
import { readFileSync } from "node:fs";
const [method, url] = process.argv.slice(2);
const data = method === "POST" ? readFileSync(0) : undefined;
const a = await axios.request({
  method, url, data, headers: { "Content-Type": "application/json" },
  validateStatus: () => true, transformResponse: (text) => text,
});
console.log("STATUS", a.status);
for (const [name, value] of Object.entries(a.headers)) console.log(`${name}: ${value}`);
console.log(a.data);
