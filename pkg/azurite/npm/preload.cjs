"use strict";
// Loaded into node before Azurite (node -r).

// Azurite requires its telemetry client even when telemetry is switched off, and that takes longer than all the rest of
// its start. Switched off, nothing of the client is ever called.
const Module = require("node:module");
const load = Module._load;
Module._load = function (request, ...rest) {
  return request === "applicationinsights" ? {} : load.call(this, request, ...rest);
};

// stdin is a pipe whose other end the starting process holds for as long as it lives. At its end Azurite shuts down, so
// that nothing is left behind by a process that was killed, on any system.
process.stdin.resume();
process.stdin.unref?.();
process.stdin.once("close", () => {
  if (!process.emit("SIGTERM")) process.exit(0);
  setTimeout(() => process.exit(0), 10000).unref();
});
