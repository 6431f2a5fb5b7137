'use strict';
// What records of the ring mean. A message is OPEN with its type, then its content as JSON in parts, of which the last is CLOSE.

module.exports = { STDOUT: 1, STDERR: 2, OPEN: 3, PART: 4, CLOSE: 5 };
