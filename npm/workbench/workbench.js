/**
 * A session's place in a box of your own, for sessions of an Open Workbench server.
 *
 * One request to the server, made with the key that `composio` has. What comes back for the box is a token of that one
 * session: the key itself never goes there.
 */

const TIMEOUT_MS = 60_000;
const KEY_OF_A_PROJECT = 'wbk_';
// By which one the server knows it.
const CREDENTIALS = [
  ['apiKey', 'x-api-key'],
  ['userApiKey', 'x-user-api-key'],
  ['orgApiKey', 'x-org-api-key'],
];

/** Why there is no place for the session. `status` and `code` are the server's, if it answered. */
export class LocalWorkbenchError extends Error {
  constructor(message, { status, code, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'LocalWorkbenchError';
    this.status = status;
    this.code = code;
  }
}

/** The helper module, as Python source, and the variables for what runs in your box. */
export async function experimental_createLocalWorkbenchSession(composio, session, options = {}) {
  const { baseURL, header, key } = configOf(composio);
  const sessionId = sessionIdOf(session);
  checkIsLocal(session, sessionId);
  const body = options.expiresInS === undefined ? {} : { expires_in_s: options.expiresInS };
  const told = await post(`${baseURL}/v1/sessions/${encodeURIComponent(sessionId)}/local-sandbox`, header, key, body);
  return {
    helperSource: told.helper_source,
    env: told.env,
    tokenId: told.token_id,
    expiresAt: told.expires_at,
  };
}

/** The variables that the helper reads, for who has made a token of the session already. */
export function experimental_createWorkbenchEnv({ sessionId, backendUrl, apiKey } = {}) {
  for (const [name, value] of Object.entries({ sessionId, backendUrl, apiKey })) {
    if (typeof value !== 'string' || value.trim() === '') {
      throw new LocalWorkbenchError(`${name} is missing: give it as a text`);
    }
  }
  if (apiKey.startsWith(KEY_OF_A_PROJECT)) {
    throw new LocalWorkbenchError(
      'apiKey is a key of a project, which can do everything there: give a token of the session (wbt_…), or use ' +
        'experimental_createLocalWorkbenchSession, which makes one',
    );
  }
  return {
    BACKEND_URL: withoutSlash(backendUrl),
    COMPOSIO_TOOLROUTER_SESSION_ID: sessionId,
    COMPOSIO_API_KEY: apiKey,
    COMPOSIO_WORKBENCH_ACCESS_KEY: apiKey,
  };
}

function configOf(composio) {
  const config = typeof composio?.getConfig === 'function' ? composio.getConfig() : undefined;
  if (!config) {
    throw new LocalWorkbenchError('composio has to be a Composio of @composio/core: it has no getConfig()');
  }
  const [name, header] = CREDENTIALS.find(([field]) => typeof config[field] === 'string' && config[field]) ?? [];
  if (name === undefined) {
    throw new LocalWorkbenchError('composio has no key: make it with new Composio({ apiKey, baseURL })');
  }
  if (typeof config.baseURL !== 'string' || !/^https?:\/\//.test(config.baseURL)) {
    throw new LocalWorkbenchError('composio has no address: make it with new Composio({ apiKey, baseURL })');
  }
  return { baseURL: withoutSlash(config.baseURL), header, key: config[name] };
}

function sessionIdOf(session) {
  const id = session?.sessionId;
  if (typeof id !== 'string' || id === '') {
    throw new LocalWorkbenchError('session has to be a session of composio: it has no sessionId');
  }
  return id;
}

function checkIsLocal(session, sessionId) {
  // What is not said counts as on, as it is on the server.
  if (session.workbench?.enable !== false) {
    throw new LocalWorkbenchError(
      `session ${sessionId} has its sandbox on the server, and cannot run in a box of yours as well: make one with ` +
        'composio.create(userId, { workbench: { enable: false } })',
    );
  }
}

async function post(url, header, key, body) {
  let response;
  let text;
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', [header]: key },
      body: JSON.stringify(body),
      // Wherever it would lead, the key must not go along.
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = await response.text();
  } catch (cause) {
    throw new LocalWorkbenchError(`no answer from ${new URL(url).origin}: ${reasonOf(cause)}`, { cause });
  }
  const told = parsed(text);
  if (!response.ok) {
    throw refused(url, response.status, told);
  }
  if (typeof told?.helper_source !== 'string' || typeof told?.env !== 'object' || told.env === null) {
    throw new LocalWorkbenchError(`${new URL(url).origin} is no Open Workbench server: its answer has no helper`, {
      status: response.status,
    });
  }
  return told;
}

function refused(url, status, told) {
  const { message, code } = told?.error ?? {};
  if (typeof message === 'string' && message !== '') {
    return new LocalWorkbenchError(message, { status, code });
  }
  const { origin } = new URL(url);
  return new LocalWorkbenchError(
    `${origin} answered with status ${status} and no word on why: is it an Open Workbench server?`,
    { status },
  );
}

function reasonOf(problem) {
  if (problem?.name === 'TimeoutError') {
    return `it was silent for ${TIMEOUT_MS / 1000} s`;
  }
  return problem?.cause?.message || problem?.message || String(problem);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function withoutSlash(url) {
  return url.trim().replace(/\/+$/, '');
}
