'use strict';
// Names of the helpers, which are loaded when one of them is first used.

/** As globals, each by its name in JavaScript and by that of Python. */
function install() {}

module.exports = { install };
