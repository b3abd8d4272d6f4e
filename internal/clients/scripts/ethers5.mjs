// Reads the demo with ethers 5: node ethers5.mjs HTTP-URL WS-URL TOKEN HOLDER BLOCK
import { ethers } from "ethers5";

const [http, ws, token, holder, block] = process.argv.slice(2);
const number = Number(block);
const abi = ["function balanceOf(address) view returns (uint256)", "function transfer(address,uint256) returns (bool)"];

async function read(provider) {
  const erc20 = new ethers.Contract(token, abi, provider);
  const head = await provider.getBlock(number);
  const [network, balance, code, logs, receipt, held] = await Promise.all([
    provider.getNetwork(),
    provider.getBalance(holder, number),
    provider.getCode(token, number),
    provider.getLogs({ address: token, topics: [ethers.utils.id("Transfer(address,address,uint256)")], fromBlock: number - 9, toBlock: number }),
    provider.getTransactionReceipt(head.transactions[0]),
    erc20.balanceOf(holder, { blockTag: number }),
  ]);
  let reverted = "no";
  try {
    await erc20.callStatic.transfer(holder, ethers.constants.MaxUint256, { from: token, blockTag: number });
  } catch (error) {
    reverted = error.data; // the contract's own error
  }
  const newest = await provider.getBlockNumber();
  return {
    chain: network.chainId, hash: head.hash, transactions: head.transactions, balance: balance.toString(), code, logs: logs.length,
    gasUsed: receipt.gasUsed.toString(), held: held.toString(), reverted, follows: newest >= number,
  };
}

const answers = {};
answers.http = await read(new ethers.providers.JsonRpcProvider(http));
answers.batched = await read(new ethers.providers.JsonRpcBatchProvider(http));
const socket = new ethers.providers.WebSocketProvider(ws);
answers.ws = await read(socket);
answers.heads = await new Promise((resolve) => {
  const seen = [];
  socket.on("block", (n) => seen.push(n) === 2 && resolve(seen[1] - seen[0]));
});
await socket.destroy();
try {
  await ethers.utils.fetchJson(http + "x", JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] }));
} catch (error) {
  answers.wrongKey = error.status;
}
console.log(JSON.stringify(answers));
process.exit(0);
