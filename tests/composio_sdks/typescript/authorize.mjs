// An account that is connected by the link of `session.authorize`: by somebody else, while the program waits.
import { Composio } from '@composio/core';
import { of, refusal, write } from './facts.mjs';

const WAIT_MS = 30000;
// The program is waiting by then; nothing depends on it.
const LATER_MS = 1500;

// In a browser elsewhere: looks at the page, and fills its form in.
async function person(link) {
  await new Promise(done => setTimeout(done, LATER_MS));
  const page = await (await fetch(link)).text();
  if (!page.includes("name='field.token'")) throw new Error(page);
  const filled = new URLSearchParams({ kind: 'BEARER_TOKEN', 'field.token': process.env.TOKEN });
  const end = await (await fetch(link, { method: 'POST', body: filled })).text();
  if (!end.includes('is connected')) throw new Error(end);
}

const composio = new Composio({ allowTracking: false, disableVersionCheck: true });
const session = await composio.create(process.env.USER_ID);
await of('toolkits before', () => session.toolkits({ toolkits: ['github'] }));
const request = await of(
  'authorize',
  () => session.authorize('github'),
  made => ({ id: made.id, status: made.status, redirect_url: made.redirectUrl })
);
const [, finished] = await Promise.allSettled([
  of('wait', () => request.waitForConnection(WAIT_MS)),
  person(request.redirectUrl),
]);
if (finished.status === 'rejected') throw finished.reason;
await of('toolkits after', () => session.toolkits({ toolkits: ['github'] }));
await of('get', () => composio.connectedAccounts.get(request.id));
const forgotten = await session.authorize('github', { callbackUrl: 'https://app.example.com/back' });
await refusal('wait in vain', () => forgotten.waitForConnection(2000));
write();
process.exit(0);
