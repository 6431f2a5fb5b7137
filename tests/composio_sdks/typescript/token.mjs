// With the token of a session instead of a key.
import { Composio } from '@composio/core';
import { of, refusal, write } from './facts.mjs';

const composio = new Composio({ allowTracking: false, disableVersionCheck: true, apiKey: process.env.TOKEN });
const session = await of('use', () => composio.use(process.env.SESSION), made => made.sessionId);
await of('workbench', () => session.execute('COMPOSIO_REMOTE_WORKBENCH', { code_to_execute: '6 * 7' }));
await refusal('create', () => composio.create('user_123'));
await refusal('use of another', () => composio.use(process.env.OTHER));
await refusal('update', () => session.update({ sandbox: { sandboxSize: 'medium' } }));
await refusal('delete', () => session.delete());
write();
process.exit(0);
