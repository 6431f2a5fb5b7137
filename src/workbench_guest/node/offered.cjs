'use strict';
// Names of the helpers of every sandbox, as JavaScript writes them and as Python does. How they ask is in helpers.cjs, loaded
// with the first call.

// Each with how many arguments stand by themselves before an object with the named ones.
const HELPERS = {
  run_composio_tool: 2,
  invoke_llm: 1,
  web_search: 1,
  upload_local_file: Infinity,
  proxy_execute: 3,
  smart_file_extract: 1,
  get_mount_file_url: 1,
  get_mount_file_s3_key: 1,
};
const NEEDING_TOOL_EXECUTION = ['run_composio_tool', 'invoke_llm', 'web_search'];

/** As globals. A session without tool execution has not all of them. */
function install() {
  const isOff = (process.env.WORKBENCH_TOOL_EXECUTION ?? '').trim().toLowerCase() === 'false';
  for (const [name, most] of Object.entries(HELPERS)) {
    if (isOff && NEEDING_TOOL_EXECUTION.includes(name)) continue;
    const call = (...given) => require('./helpers.cjs').call(name, most, given);
    for (const called of [name, camelCase(name)]) {
      Object.defineProperty(globalThis, called, { value: call, writable: true, configurable: true, enumerable: false });
    }
  }
}

const camelCase = (name) => name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());

module.exports = { install };
