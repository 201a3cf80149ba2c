// Makes one change of an API by its vendor's library, as a script does. The arguments are the library's name and a
// word that the change is known by. It prints the id of what it made.
const clients = {
  async stripe(word) {
    const { default: Stripe } = await import('stripe');
    return (await new Stripe('sk_test_none').refunds.create({ payment_intent: `pi_${word}`, amount: 500 })).id;
  },
  async '@octokit/rest'(word) {
    const { Octokit } = await import('@octokit/rest');
    const { data } = await new Octokit({ auth: 'none' }).rest.issues.create({ owner: 'octo', repo: 'hello', title: word, body: 'How it broke' });
    return data.number;
  },
  async '@slack/web-api'(word) {
    const { WebClient } = await import('@slack/web-api');
    return (await new WebClient('xoxb-none').chat.postMessage({ channel: 'C024BE91L', text: word })).ts;
  },
  async '@notionhq/client'(word) {
    const { Client } = await import('@notionhq/client');
    const page = await new Client({ auth: 'none' }).pages.create({
      parent: { type: 'data_source_id', data_source_id: 'f336d0bc-b841-465b-8045-024475c079dd' },
      properties: { Name: { title: [{ text: { content: word } }] } },
    });
    return page.id;
  },
  async '@linear/sdk'(word) {
    const { LinearClient } = await import('@linear/sdk');
    const made = await new LinearClient({ apiKey: 'none' }).createIssue({ teamId: '9cfb482a-81e3-4154-b5b9-2c805e70a02d', title: word });
    return made.issueId;
  },
  async twilio(word) {
    const { default: twilio } = await import('twilio');
    const client = twilio('AC00000000000000000000000000000001', 'none');
    return (await client.messages.create({ to: '+15005550006', from: '+15005550001', body: word })).sid;
  },
  async '@modelcontextprotocol/sdk'(word) {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    return ticket(new Client({ name: 'agent', version: '1' }), StreamableHTTPClientTransport, word);
  },
  async '@modelcontextprotocol/client'(word) {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const options = { versionNegotiation: { mode: { pin: '2026-07-28' } } };
    return ticket(new Client({ name: 'agent', version: '1' }, options), StreamableHTTPClientTransport, word);
  },
  async '@modelcontextprotocol/server-everything'(word) {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client({ name: 'agent', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(server));
    const { content } = await client.callTool({ name: 'echo', arguments: { message: word } });
    await client.close();
    return content[0].text;
  },
};

const server = new URL('https://mcp.keep-proxy.test/mcp');

// Opens a ticket at an MCP server.
async function ticket(client, Transport, word) {
  await client.connect(new Transport(server));
  const made = await client.callTool({ name: 'ticket_create', arguments: { order: word, title: 'It broke' } });
  await client.close();
  return made.structuredContent.id;
}

const [library, word] = process.argv.slice(2);
if (!clients[library] || !word) {
  console.error('usage: node client.mjs LIBRARY WORD');
  process.exit(2);
}
try {
  console.log(await clients[library](word));
} catch (error) {
  console.error(error.message ?? error);
  process.exit(1);
}
