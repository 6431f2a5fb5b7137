// The hook for imports on Nodes whose loader has a thread of its own. What it does is in ask.cjs.

import { createRequire } from 'node:module';

const { provideImport } = createRequire(import.meta.url)('./ask.cjs');

export async function resolve(specifier, context, next) {
  try {
    return await next(specifier, context);
  } catch (error) {
    return provideImport(specifier, context, next, error);
  }
}
