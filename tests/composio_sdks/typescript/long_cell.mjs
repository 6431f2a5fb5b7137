// A cell that takes longer than the SDK waits for an answer to begin.
import { Composio } from '@composio/core';
import { of, write } from './facts.mjs';

const code = `
import time
with open('/mnt/files/runs', 'a') as runs: runs.write('x')
time.sleep(75)
print('done')
`;
const composio = new Composio({ allowTracking: false, disableVersionCheck: true });
const session = await of('create', () => composio.create('user_123'), made => made.sessionId);
await of('workbench', () => session.execute('COMPOSIO_REMOTE_WORKBENCH', { code_to_execute: code }));
await of('runs', () => session.execute('COMPOSIO_REMOTE_BASH_TOOL', { command: 'cat /mnt/files/runs' }));
write();
process.exit(0);
