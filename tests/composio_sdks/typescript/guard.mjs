// An upload to a server whose links lead to loopback, and what needs no link.
import { Composio } from '@composio/core';
import { of, refusal, write } from './facts.mjs';

const session = await new Composio({ allowTracking: false, disableVersionCheck: true }).create('user_123');
const mount = session.experimental.files;
await refusal('upload', () => mount.upload(new TextEncoder().encode('x'), { remotePath: 'x.txt', mimetype: 'text/plain' }));
await of('list', () => mount.list());
write();
process.exit(0);
