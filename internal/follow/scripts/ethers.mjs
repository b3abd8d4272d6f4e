// Prints the notifications that ethers receives: node ethers.mjs HTTP-URL WS-URL CONTRACT
import { JsonRpcProvider, WebSocketProvider } from "ethers";

const [http, ws, address] = process.argv.slice(2);
const print = (stream, event) => console.log(JSON.stringify({ stream, ...event }));
const printLog = (stream) => (log) => print(stream, { block: log.blockHash, number: log.blockNumber, topic: log.topics[0], removed: log.removed });

const socket = new WebSocketProvider(ws);
await socket.getNetwork(); // required to decode logs
socket.on("block", (number) => print("heads", { number }));
socket.on({ address }, printLog("logs"));

const polling = new JsonRpcProvider(http, undefined, { polling: false });
polling.pollingInterval = 200;
await polling.getNetwork();
polling.on({ address }, printLog("polled"));
