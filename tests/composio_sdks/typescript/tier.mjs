// A session of a larger tier, as the first release that can ask for one makes it.
import { Composio } from '@composio/core';
import { of, write } from './facts.mjs';

const composio = new Composio({ allowTracking: false, disableVersionCheck: true });
const session = await of(
  'create',
  () => composio.create('user_123', { workbench: { sandboxSize: 'large' } }),
  made => made.sessionId
);
await of('workbench', () => session.execute('COMPOSIO_REMOTE_WORKBENCH', { code_to_execute: '6 * 7' }));
write();
process.exit(0);
