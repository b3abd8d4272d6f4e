// Reads the demo with ethers: node ethers.mjs HTTP-URL WS-URL TOKEN HOLDER BLOCK
import { Contract, FetchRequest, JsonRpcProvider, WebSocketProvider, id } from "ethers";

const [http, ws, token, holder, block] = process.argv.slice(2);
const number = Number(block);
const abi = ["function balanceOf(address) view returns (uint256)", "function transfer(address,uint256) returns (bool)"];
const text = (value) => JSON.parse(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? v.toString() : v)));

async function read(provider) {
  const erc20 = new Contract(token, abi, provider);
  const head = await provider.getBlock(number, true);
  const [network, balance, code, logs, receipt, held] = await Promise.all([ // one batch
    provider.getNetwork(),
    provider.getBalance(holder, number),
    provider.getCode(token, number),
    provider.getLogs({ address: token, topics: [id("Transfer(address,address,uint256)")], fromBlock: number - 9, toBlock: number }),
    provider.getTransactionReceipt(head.transactions[0]),
    erc20.balanceOf(holder, { blockTag: number }),
  ]);
  let reverted = "no";
  try {
    await erc20.transfer.staticCall(holder, 1n << 200n, { from: token, blockTag: number });
  } catch (error) {
    reverted = error.code;
  }
  const newest = await provider.getBlockNumber();
  return text({
    chain: network.chainId, hash: head.hash, transactions: head.transactions, balance, code, logs: logs.length,
    gasUsed: receipt.gasUsed, held, reverted, follows: newest >= number,
  });
}

const answers = {};
const provider = new JsonRpcProvider(http);
answers.http = await read(provider);
provider.destroy();
const socket = new WebSocketProvider(ws);
answers.ws = await read(socket);
await socket.destroy();
const wrong = new FetchRequest(http + "x");
wrong.body = { jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] };
answers.wrongKey = (await wrong.send()).statusCode;
console.log(JSON.stringify(answers));
process.exit(0);
