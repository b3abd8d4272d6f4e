// Tells what ethers is told: node ethers.mjs HTTP-URL WS-URL CONTRACT
import { JsonRpcProvider, WebSocketProvider } from "ethers";

const [http, ws, address] = process.argv.slice(2);
const tell = (stream, event) => console.log(JSON.stringify({ stream, ...event }));
const told = (stream) => (log) => tell(stream, { block: log.blockHash, number: log.blockNumber, topic: log.topics[0], removed: log.removed });

const socket = new WebSocketProvider(ws);
await socket.getNetwork(); // without which it cannot make logs of what it is told
socket.on("block", (number) => tell("heads", { number }));
socket.on({ address }, told("logs"));

const polling = new JsonRpcProvider(http, undefined, { polling: false });
polling.pollingInterval = 200;
await polling.getNetwork();
polling.on({ address }, told("polled"));
