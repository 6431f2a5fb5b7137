// What users of the official TypeScript SDK do, one after the other, against the server that the environment names.
// Nothing here knows of our server. See python/exchanges.py, which is the same with the other SDK.
import { readFileSync, writeFileSync } from 'node:fs';
import { BaseAgenticProvider, Composio, experimental_createTool } from '@composio/core';
import { z } from 'zod';
import { of, refusal, write } from './facts.mjs';

const WORKBENCH = 'COMPOSIO_REMOTE_WORKBENCH';
const BASH = 'COMPOSIO_REMOTE_BASH_TOOL';
const quiet = { allowTracking: false, disableVersionCheck: true };

const seen = session => ({
  sessionId: session.sessionId,
  mcp: session.mcp,
  preload: session.preload,
  workbench: session.workbench,
  sandbox: session.sandbox,
  configVersion: session.configVersion,
  config: session.config,
  warnings: session.warnings,
  prompt: session.experimental?.assistivePrompt,
});
const names = async session => (await session.tools()).map(one => one.function.name);
const run = (session, code) => session.execute(WORKBENCH, { code_to_execute: code });
const bash = (session, command) => session.execute(BASH, { command });

async function sessions(composio) {
  await of('create', () => composio.create('user_123'), seen);
  await of('create with mcp', () => composio.create('user_123', { mcp: true }), seen);
  await of(
    'create with everything of a sandbox',
    () =>
      composio.create('user_123', {
        sandbox: { enable: true, enableProxyExecution: false, autoOffloadThreshold: 300, sandboxSize: 'large' },
      }),
    seen
  );
  const off = await of(
    'create without a sandbox',
    () => composio.create('user_123', { toolkits: ['github'], workbench: { enable: false } }),
    seen
  );
  await of('tools without a sandbox', () => names(off));
  await refusal('workbench without a sandbox', () => run(off, '1'));
  await of('create xlarge', () => composio.create('user_123', { sandbox: { sandboxSize: 'xlarge' } }), seen);
  await of('create with an empty block', () => composio.create('user_123', { sandbox: {} }), seen);
  await refusal('create with a size of nobody', () => composio.create('user_123', { sandbox: { sandboxSize: 'huge' } }));
  await of(
    'create with everything else',
    () =>
      composio.create('u2', {
        toolkits: { disable: ['linear'] },
        tools: { gmail: ['GMAIL_SEND_EMAIL'], github: { disable: ['GITHUB_X'] }, slack: { tags: ['readOnlyHint'] } },
        tags: { enable: ['readOnlyHint'], disable: ['destructiveHint'] },
        authConfigs: { github: 'ac_1' },
        connectedAccounts: { github: ['ca_1'] },
        manageConnections: { enable: true, callbackUrl: 'https://cb', waitForConnections: true },
        multiAccount: { enable: true },
        preload: { tools: ['GITHUB_X'] },
        experimental: { assistivePrompt: { userTimezone: 'Europe/London' } },
      }),
    seen
  );
  const direct = await of(
    'create of direct tools',
    () => composio.create('u3', { toolkits: ['github'], sessionPreset: 'direct_tools' }),
    seen
  );
  await of('direct tools', () => names(direct));
}

async function changes(composio) {
  const session = await composio.create('user_123');
  await run(session, 'kept = 41');
  await of('update', () => session.update({ sandbox: { sandboxSize: 'medium' } }), () => seen(session));
  await of('after the update', () => run(session, 'kept + 1'));
  if (session.listConfigHistory) {
    await refusal('update of an old version', () =>
      session.update({ toolkits: ['github'], expectedConfigVersion: 99 })
    );
    await of('history', () => session.listConfigHistory({ limit: 10 }));
  }
  await of('use', () => composio.use(session.sessionId), seen);
  await refusal('use of nobody', () => composio.use('trs_nope'));
  await of('delete', () => session.delete());
  await refusal('execute after delete', () => session.execute('X', {}));
  await refusal('delete again', () => composio.sessions.delete(session.sessionId));
}

async function calls(composio) {
  const session = await composio.create('user_123');
  await of('tools', () => session.tools());
  await of('search', () => session.search({ query: 'get a pull request', toolkits: ['github'] }));
  await of('search for a model', () => session.search({ query: 'ask a language model' }));
  const pull = { owner: 'composiohq', repo: 'composio', pull_number: 1 };
  await refusal('execute of an app', () => session.execute('GITHUB_GET_A_PULL_REQUEST', pull));
  await refusal('execute without arguments', () => session.execute('HACKERNEWS_GET_TOP'));
  await refusal('execute with an account', () => session.execute('GITHUB_X', {}, { account: 'ca_1' }));
  await of('workbench', () => run(session, 'x = 1\n1+1'));
  await of('workbench again', () => run(session, 'print(x)'));
  await of('workbench raises', () => run(session, '1/0'));
  await refusal('workbench without code', () => session.execute(WORKBENCH, {}));
  await of('bash', () => bash(session, 'echo hi; pwd'));
  const many = [
    { tool_slug: 'COMPOSIO_SEARCH_GROQ_CHAT', arguments: { messages: [{ role: 'user', content: 'say:yes' }] } },
    { tool_slug: 'GITHUB_X', arguments: {} },
  ];
  await of('multi execute', () =>
    session.execute('COMPOSIO_MULTI_EXECUTE_TOOL', { tools: many, sync_response_to_workbench: false })
  );
  await of('schemas', () =>
    session.execute('COMPOSIO_GET_TOOL_SCHEMAS', { tool_slugs: ['COMPOSIO_SEARCH_EXA_ANSWER', 'NO_SUCH'] })
  );
  await of('connections', () => session.execute('COMPOSIO_MANAGE_CONNECTIONS', { toolkits: ['github'] }));
  await of('toolkits', () =>
    session.toolkits({ limit: 2, toolkits: ['github', 'hackernews'], isConnected: true, search: 'g' })
  );
  await of('all toolkits', () => session.toolkits());
  await of('authorize', () => session.authorize('github', { callbackUrl: 'https://cb', alias: 'work' }));
  await refusal('account of nobody', () => composio.connectedAccounts.get('ca_9'));
  await refusal('proxy', () =>
    session.proxyExecute({
      toolkit: 'github',
      endpoint: '/user',
      method: 'GET',
      parameters: [{ name: 'per_page', in: 'query', value: 1 }],
    })
  );
  const call = { id: 'call_1', type: 'function', function: { name: WORKBENCH, arguments: '{"code_to_execute": "6*7"}' } };
  await refusal('provider', () => composio.provider.executeToolCall('user_123', call));
}

async function customTools(composio) {
  const grep = experimental_createTool('GREP', {
    name: 'Grep',
    description: 'Search files',
    inputParams: z.object({ pattern: z.string() }),
    execute: async given => ({ matches: [given.pattern] }),
  });
  const session = await of(
    'create with a custom tool',
    () => composio.create('u4', { experimental: { customTools: [grep] } }),
    made => made.customTools()
  );
  await of('custom tool', () => session.execute('GREP', { pattern: 'needle' }));
  await of('custom tool by its whole name', () => session.execute('LOCAL_GREP', { pattern: 'needle' }));
  await refusal('another tool beside it', () => session.execute('GITHUB_X', { a: 1 }));
  await of('search beside it', () => session.search({ query: 'search files for a pattern' }));
  const again = await of('attach', () => composio.use(session.sessionId, { customTools: [grep] }), seen);
  await of('custom tool after attach', () => again.execute('GREP', { pattern: 'again' }));
}

// The simplest framework of agents: a tool is a function.
class Callables extends BaseAgenticProvider {
  name = 'callables';
  wrapTool(tool, execute) {
    return given => execute(tool.slug, given);
  }
  wrapTools(tools, execute) {
    return Object.fromEntries(tools.map(tool => [tool.slug, this.wrapTool(tool, execute)]));
  }
}

async function agents() {
  const agentic = new Composio({ ...quiet, provider: new Callables() });
  const loud = experimental_createTool('SHOUT', {
    name: 'Shout',
    description: 'Make it loud.',
    inputParams: z.object({ pattern: z.string() }),
    execute: async given => ({ loud: given.pattern.toUpperCase() }),
  });
  const session = await agentic.create('u5', { experimental: { customTools: [loud] } });
  const tools = await of('functions', () => session.tools(), made => Object.keys(made));
  await of('function', () => tools[WORKBENCH]({ code_to_execute: '6 * 7' }));
  await of('function that fails', () => tools[WORKBENCH]({ code_to_execute: '1/0' }));
  const both = [
    { tool_slug: 'LOCAL_SHOUT', arguments: { pattern: 'a' } },
    { tool_slug: 'GITHUB_X', arguments: {} },
  ];
  await of('a batch of both', () =>
    tools['COMPOSIO_MULTI_EXECUTE_TOOL']({ tools: both, sync_response_to_workbench: false })
  );
}

async function files(composio) {
  const session = await composio.create('user_123');
  const mount = session.experimental.files;
  writeFileSync('sales.csv', 'region,total\nwest,10\n');
  const remote = async file => ({
    expiresAt: file.expiresAt,
    mountRelativePath: file.mountRelativePath,
    sandboxMountPrefix: file.sandboxMountPrefix,
    downloadUrl: file.downloadUrl,
    filename: file.filename,
    text: await file.text(),
  });
  await of('list of nothing', () => mount.list());
  await of('upload of a path', () => mount.upload('./sales.csv'), remote);
  await of(
    'upload to a folder',
    () => mount.upload('./sales.csv', { remotePath: 'data/in/sales.csv', mimetype: 'text/csv' }),
    remote
  );
  const bytes = new TextEncoder().encode('{"a":1}');
  await of('upload of bytes', () => mount.upload(bytes, { remotePath: 'data.json', mimetype: 'application/json' }), remote);
  await of('upload of a file', () => mount.upload(new File(['x,y'], 'f.csv', { type: 'text/csv' })), remote);
  await of('upload without a name', () => mount.upload(bytes, { mimetype: 'application/json' }), remote);
  await of('the sandbox sees them', () =>
    bash(session, "cd /mnt/files && find . -name '*.csv' | sort && cat sales.csv")
  );
  await of('list', () => mount.list());
  const first = await of('first page', () => mount.list({ limit: 1 }));
  await of('second page', () => mount.list({ cursor: first.nextCursor, limit: 10 }));
  await of('list of a folder', () => mount.list({ path: '/data', limit: 10 }));
  await refusal('list of a cursor of nobody', () => mount.list({ cursor: 'no cursor!', limit: 10 }));
  await refusal('list of another mount', () => mount.list({ mountId: 'other' }));
  await run(session, "open('/mnt/files/report.pdf', 'wb').write(b'PDF!')");
  const report = await of('download', () => mount.download('/report.pdf'), remote);
  await of('save', () => report.save('./report.pdf'), () => readFileSync('report.pdf', 'utf-8'));
  await of('buffer', () => report.buffer(), got => Buffer.from(got).toString());
  await of('blob', () => report.blob(), async got => ({ type: got.type, text: await got.text() }));
  await refusal('download of nobody', async () => (await mount.download('/missing.pdf')).buffer());
  await refusal('upload out of the mount', () => mount.upload(bytes, { remotePath: '../x', mimetype: 'text/plain' }));
  await of('delete of a file', () => mount.delete('/sales.csv'));
  await of('delete of a folder', () => mount.delete('/data'));
  await refusal('delete of what is gone', () => mount.delete('/sales.csv'));
  await of('list at the end', () => mount.list());
}

async function refusals() {
  await refusal('create with a wrong key', () => new Composio({ ...quiet, apiKey: 'wbk_nobody' }).create('u'));
  const runner = new Composio({ ...quiet, apiKey: process.env.RUN_KEY });
  const session = await of('create with the narrow key', () => runner.create('u'), seen);
  await refusal('proxy with the narrow key', () =>
    session.proxyExecute({ toolkit: 'github', endpoint: '/user', method: 'GET' })
  );
}

const composio = new Composio(quiet);
for (const topic of [sessions, changes, calls, customTools, agents, files, refusals]) {
  await refusal(`all of ${topic.name}`, () => topic(composio));
}
write();
process.exit(0);
