// Prints the notifications that viem receives: node viem.mjs HTTP-URL WS-URL CONTRACT
import { createPublicClient, http, webSocket } from "viem";

const [httpURL, wsURL, address] = process.argv.slice(2);
const print = (stream, event) => console.log(JSON.stringify({ stream, ...event }));
const fail = (error) => { console.error(error); process.exit(1); };
const printLogs = (stream) => (logs) => {
  for (const log of logs) print(stream, { block: log.blockHash, number: Number(log.blockNumber), topic: log.topics[0], removed: log.removed });
};

const socket = createPublicClient({ transport: webSocket(wsURL) });
await socket.transport.subscribe({
  params: ["newHeads"], onError: fail,
  onData: ({ result }) => print("heads", { block: result.hash, number: Number(result.number) }),
});
socket.watchEvent({ address, onLogs: printLogs("logs"), onError: fail });

const polling = createPublicClient({ transport: http(httpURL) });
const filter = await polling.createEventFilter({ address });
const poll = async () => {
  printLogs("polled")(await polling.getFilterChanges({ filter }));
  setTimeout(() => poll().catch(fail), 200);
};
poll().catch(fail);
