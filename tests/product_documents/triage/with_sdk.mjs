// What an agent does with the official TypeScript SDK: the steps that the environment names, in one session.
import { Composio } from '@composio/core';
import { of, write } from './facts.mjs';

const composio = new Composio({ allowTracking: false, disableVersionCheck: true });
const session = await of('session', () => composio.create('ann'), made => made.sessionId);
await of('session.search', () => session.search({ query: JSON.parse(process.env.USE_CASE) }));
for (const [name, [slug, given]] of Object.entries(JSON.parse(process.env.STEPS))) {
  await of(name, () => session.execute(slug, given));
}
write();
process.exit(0);
