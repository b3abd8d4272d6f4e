// Reads the demo with viem: node viem.mjs HTTP-URL WS-URL TOKEN HOLDER BLOCK [CALLS]
// With CALLS it only makes that many calls over HTTP, one after the other, and prints how many were
// answered.
import { createPublicClient, http, parseAbi, parseAbiItem, webSocket } from "viem";

const [httpURL, wsURL, token, holder, block, calls] = process.argv.slice(2);
const blockNumber = BigInt(block);
const abi = parseAbi(["function balanceOf(address) view returns (uint256)", "function transfer(address,uint256) returns (bool)"]);
const text = (value) => JSON.parse(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? v.toString() : v)));

async function read(client) {
  const head = await client.getBlock({ blockNumber, includeTransactions: false });
  const [chain, balance, code, logs, receipt, held, proof] = await Promise.all([
    client.getChainId(),
    client.getBalance({ address: holder, blockNumber }),
    client.getCode({ address: token, blockNumber }),
    client.getLogs({ address: token, event: parseAbiItem("event Transfer(address indexed, address indexed, uint256)"), fromBlock: blockNumber - 9n, toBlock: blockNumber }),
    client.getTransactionReceipt({ hash: head.transactions[0] }),
    client.readContract({ address: token, abi, functionName: "balanceOf", args: [holder], blockNumber }),
    client.getProof({ address: token, storageKeys: [], blockNumber }),
  ]);
  let reverted = "no";
  try {
    await client.simulateContract({ address: token, abi, functionName: "transfer", args: [holder, 1n << 200n], account: token, blockNumber });
  } catch (error) {
    reverted = error.walk((e) => e.name === "ContractFunctionRevertedError" || e.name === "ExecutionRevertedError")?.name ?? String(error);
  }
  const [simulated] = await client.simulateBlocks({
    blocks: [{ calls: [{ to: token, abi, functionName: "balanceOf", args: [holder] }], stateOverrides: [{ address: holder, balance: 1n }] }], blockNumber,
  });
  const { from: sender, nonce } = await client.getTransaction({ hash: head.transactions[0] });
  const sent = await client.getTransaction({ sender, nonce });
  const newest = await client.getBlockNumber();
  return text({
    chain, hash: head.hash, transactions: head.transactions, balance, code, logs: logs.length,
    gasUsed: receipt.gasUsed, sent: sent.hash, held, proof: proof.accountProof.length, reverted, follows: newest >= blockNumber,
    simulated: simulated.calls[0].status === "success" && simulated.calls[0].result === held && simulated.number === blockNumber + 1n,
  });
}

const answers = {};
if (calls) {
  const client = createPublicClient({ transport: http(httpURL) });
  answers.answered = 0;
  for (let i = 0; i < Number(calls); i++) {
    await client.getBalance({ address: holder, blockNumber });
    answers.answered++;
  }
} else {
  answers.http = await read(createPublicClient({ transport: http(httpURL) }));
  answers.batched = await read(createPublicClient({ transport: http(httpURL, { batch: true }) }));
  answers.ws = await read(createPublicClient({ transport: webSocket(wsURL) }));
  try {
    await createPublicClient({ transport: http(httpURL + "x") }).getChainId();
  } catch (error) {
    answers.wrongKey = error.walk((e) => e.status)?.status;
  }
}
console.log(JSON.stringify(answers));
process.exit(0);
