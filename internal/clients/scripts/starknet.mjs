// Reads the demo's Starknet network with starknet.js:
//
//	node starknet.mjs URL FROM TO KEY CHUNK
//
// It lists the events of blocks FROM to TO whose first key is KEY, CHUNK at a time.
import { RpcProvider } from "starknet";

const [nodeUrl, from, to, key, chunk] = process.argv.slice(2);

const provider = await RpcProvider.create({ nodeUrl }); // which asks for the version, and refuses others than its own
const latest = await provider.getBlockLatestAccepted();
const events = [];
let pages = 0;
let continuation_token;
do {
  const page = await provider.getEvents({
    from_block: { block_number: Number(from) }, to_block: { block_number: Number(to) }, keys: [[key]],
    chunk_size: Number(chunk), continuation_token,
  });
  events.push(...page.events);
  continuation_token = page.continuation_token;
  pages++;
} while (continuation_token);
const wrong = await fetch(nodeUrl + "x", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });

console.log(JSON.stringify({
  version: await provider.getSpecVersion(),
  chain: await provider.getChainId(),
  follows: (await provider.getBlockNumber()) >= latest.block_number,
  block: (await provider.channel.fetchEndpoint("starknet_getBlockWithTxHashes", { block_id: { block_number: Number(to) } })).block_hash,
  receipts: (await Promise.all(events.slice(0, 3).map((e) => provider.getTransactionReceipt(e.transaction_hash)))).map((r) => r.block_number),
  events,
  pages,
  wrongKey: wrong.status,
}));
