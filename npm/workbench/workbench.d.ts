/** What is needed of a `Composio` of `@composio/core`. */
export interface ComposioLike {
  getConfig(): Readonly<{
    apiKey?: string | null;
    userApiKey?: string | null;
    orgApiKey?: string | null;
    baseURL?: string | null;
  }>;
}

/** What is needed of a session of it: one that was created with `workbench: { enable: false }`. */
export interface LocalSessionLike {
  readonly sessionId: string;
  readonly workbench?: { readonly enable?: boolean };
}

export interface WorkbenchEnv {
  BACKEND_URL: string;
  COMPOSIO_TOOLROUTER_SESSION_ID: string;
  /** A token of the session, by the name that helpers know. */
  COMPOSIO_API_KEY: string;
  /** The same token, by the name that says what it is. */
  COMPOSIO_WORKBENCH_ACCESS_KEY: string;
  [name: string]: string;
}

export interface LocalWorkbenchSession {
  /** A Python module; write it into your box as composio_helper.py. */
  helperSource: string;
  /** Variables for what runs there. */
  env: WorkbenchEnv;
  /** By which the token can be revoked: `DELETE /v1/keys/{tokenId}`. */
  tokenId: string;
  /** ISO 8601, UTC. */
  expiresAt: string;
}

export declare class LocalWorkbenchError extends Error {
  readonly name: 'LocalWorkbenchError';
  /** Of the server's answer, if there was one. */
  readonly status?: number;
  /** The server's word for the error, such as `conflict`. */
  readonly code?: string;
}

/**
 * The helper module and the variables for a box that you run.
 *
 * @throws LocalWorkbenchError if the session's sandbox is on, `composio` has no key, or the server refuses.
 */
export declare function experimental_createLocalWorkbenchSession(
  composio: ComposioLike,
  session: LocalSessionLike,
  options?: {
    /** For how many seconds the token is good: a day unless given, 30 days at most. */
    expiresInS?: number;
  },
): Promise<LocalWorkbenchSession>;

/**
 * The variables alone, for who has made a token of the session already.
 *
 * @throws LocalWorkbenchError if one is missing, or `apiKey` is a key of a project and no token.
 */
export declare function experimental_createWorkbenchEnv(options: {
  sessionId: string;
  backendUrl: string;
  /** A token of the session. */
  apiKey: string;
}): WorkbenchEnv;
