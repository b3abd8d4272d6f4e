import { createConfig } from "ponder";
import { parseAbi } from "viem";

export default createConfig({
  chains: { demo: { id: 1337001, rpc: process.env.RPC_URL } },
  contracts: {
    Token: {
      abi: parseAbi(["function transfer(address to, uint256 amount) returns (bool)"]),
      chain: "demo",
      address: process.env.TOKEN as `0x${string}`,
      includeCallTraces: true,
      startBlock: 1,
      endBlock: 30,
    },
  },
});
