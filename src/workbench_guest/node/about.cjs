'use strict';
// What the kernel says of itself.

const { VERSION } = require('./messages.cjs');

/** The content of a kernel_info_reply. */
function kernelInfo() {
  const version = process.versions.node;
  return {
    status: 'ok',
    protocol_version: VERSION,
    implementation: 'workbench-node',
    implementation_version: '1.0',
    language_info: {
      name: 'javascript',
      version,
      mimetype: 'application/javascript',
      file_extension: '.js',
      pygments_lexer: 'javascript',
      codemirror_mode: 'javascript',
      nbconvert_exporter: 'script',
    },
    banner: `Node.js ${version}`,
    help_links: [{ text: 'Node.js', url: 'https://nodejs.org/docs/latest/api/' }],
    supported_features: [],
  };
}

module.exports = { kernelInfo };
