import { createConfig } from "ponder";

export default createConfig({
  chains: { dev: { id: Number(process.env.CHAIN_ID), rpc: process.env.RPC_URL, pollingInterval: 100 } },
  accounts: {
    Counter: { chain: "dev", address: process.env.COUNTER as `0x${string}`, startBlock: 1 },
  },
  blocks: {
    Every: { chain: "dev", interval: 1, startBlock: 1 },
  },
});
