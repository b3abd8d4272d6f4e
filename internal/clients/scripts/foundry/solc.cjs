#!/usr/bin/env node
// The compiler of npm's package solc, as forge runs a solc. NODE_PATH has the package.
const { readFileSync } = require("fs");
const solc = require("solc");

if (process.argv.includes("--version")) {
  console.log(`Version: ${solc.version()}`);
} else { // forge sends standard JSON
  process.stdout.write(solc.compile(readFileSync(0, "utf8")));
}
