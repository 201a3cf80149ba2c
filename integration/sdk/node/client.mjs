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
};

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
