// Compiles every .sol file of this directory into contracts.json: for each contract
// its ABI, creation bytecode and runtime bytecode. See README.md.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const wanted = "0.8.30";
const here = dirname(fileURLToPath(import.meta.url));
// solc is looked for from the working directory, so that no node_modules need be here.
const solc = createRequire(join(process.cwd(), "package.json"))("solc");
if (!solc.version().startsWith(wanted + "+")) {
  console.error(`solc is ${solc.version()}, expected ${wanted}: npm install solc@${wanted}`);
  process.exit(1);
}

const files = readdirSync(here).filter((name) => name.endsWith(".sol")).sort();
const input = {
  language: "Solidity",
  sources: Object.fromEntries(files.map((name) => [name, { content: readFileSync(join(here, name), "utf8") }])),
  settings: {
    evmVersion: "prague",
    optimizer: { enabled: true, runs: 200 },
    // No hash of the sources in the bytecode: comments can be mended without a new chain.
    metadata: { bytecodeHash: "none", appendCBOR: false },
    outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
  },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
for (const problem of output.errors ?? []) {
  console.error(problem.formattedMessage);
}
if ((output.errors ?? []).some((problem) => problem.severity === "error")) {
  process.exit(1);
}

const artifact = {};
for (const name of files) {
  for (const [contract, made] of Object.entries(output.contracts[name])) {
    if (made.evm.bytecode.object === "") continue; // an interface
    artifact[contract] = {
      abi: made.abi,
      bytecode: "0x" + made.evm.bytecode.object,
      runtime: "0x" + made.evm.deployedBytecode.object,
    };
  }
}
writeFileSync(join(here, "contracts.json"), JSON.stringify(artifact, null, 1) + "\n");
