// What an SDK told, written down as JSON for the tests, which run elsewhere. See python/facts.py, which is the same.
import { writeFileSync } from 'node:fs';

const known = {};

const raised = problem => ({
  raised: problem?.name ?? String(problem),
  kind: problem?.constructor?.name,
  message: String(problem?.message).slice(0, 2000),
  status: problem?.status ?? problem?.statusCode ?? problem?.cause?.status ?? null,
  cause: problem?.cause ? { raised: problem.cause.constructor?.name, status: problem.cause.status ?? null } : null,
});

// Notes what the call gives, as `show` puts it; what it throws is noted and thrown.
export async function of(name, call, show = it => it) {
  try {
    const made = await call();
    known[name] = { gave: (await show(made)) ?? null };
    return made;
  } catch (problem) {
    known[name] = raised(problem);
    throw problem;
  }
}

// Notes what the call throws; a call that gives something is noted as such, for the test to wonder at.
export async function refusal(name, call) {
  try {
    known[name] = { gave: (await call()) ?? null };
  } catch (problem) {
    known[name] = raised(problem);
  }
}

export const write = () => writeFileSync(process.env.FACTS, JSON.stringify(known));
