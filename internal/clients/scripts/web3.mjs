// Reads the demo with web3.js: node web3.mjs HTTP-URL WS-URL TOKEN HOLDER BLOCK
import { Web3 } from "web3";

const [http, ws, token, holder, block] = process.argv.slice(2);
const number = Number(block);
const uint = { name: "value", type: "uint256" };
const address = { name: "account", type: "address" };
const abi = [
  { type: "function", name: "balanceOf", stateMutability: "view", inputs: [address], outputs: [uint] },
  { type: "function", name: "transfer", stateMutability: "nonpayable", inputs: [address, uint], outputs: [{ name: "", type: "bool" }] },
  { type: "event", name: "Transfer", inputs: [{ ...address, name: "from", indexed: true }, { ...address, name: "to", indexed: true }, uint] },
];
const text = (value) => JSON.parse(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? v.toString() : v)));

async function read(web3) {
  const erc20 = new web3.eth.Contract(abi, token);
  erc20.handleRevert = true;
  const head = await web3.eth.getBlock(number);
  const [chain, balance, code, logs, receipt, held] = await Promise.all([
    web3.eth.getChainId(),
    web3.eth.getBalance(holder, number),
    web3.eth.getCode(token, number),
    erc20.getPastEvents("Transfer", { fromBlock: number - 9, toBlock: number }),
    web3.eth.getTransactionReceipt(head.transactions[0]),
    erc20.methods.balanceOf(holder).call({}, number),
  ]);
  let reverted = "no";
  try {
    await erc20.methods.transfer(holder, (1n << 256n) - 1n).call({ from: token }, number);
  } catch (error) {
    reverted = error.cause.data; // the contract's own error
  }
  const newest = await web3.eth.getBlockNumber();
  return text({ chain, hash: head.hash, transactions: head.transactions, balance, code, logs: logs.length, gasUsed: receipt.gasUsed, held, reverted, follows: newest >= number });
}

const answers = {};
const web3 = new Web3(http);
answers.http = await read(web3);
const socket = new Web3(ws);
answers.ws = await read(socket);
const heads = await socket.eth.subscribe("newBlockHeaders");
answers.heads = await new Promise((resolve) => {
  const seen = [];
  heads.on("data", (head) => seen.push(Number(head.number)) === 2 && resolve(seen[1] - seen[0]));
});
const batch = new web3.BatchRequest();
const [first, second] = ["eth_getBalance", "eth_getCode"].map((method, i) => batch.add({ jsonrpc: "2.0", id: i + 1, method, params: [i ? token : holder, `0x${number.toString(16)}`] }));
await batch.execute();
answers.batched = { ...answers.http, balance: BigInt(await first).toString(), code: await second };
answers.wrongKey = (await fetch(http + "x", { method: "POST", headers: { "content-type": "application/json" }, body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}' })).status;
console.log(JSON.stringify(answers));
process.exit(0);
