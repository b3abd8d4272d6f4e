import { ponder } from "ponder:registry";
import { block, call } from "ponder:schema";

ponder.on("Every:block", async ({ event, context }) => {
  const count = await context.client.getStorageAt({ address: process.env.COUNTER as `0x${string}`, slot: "0x0" });
  await context.db.insert(block).values({ hash: event.block.hash, number: Number(event.block.number), count });
});

ponder.on("Counter:transaction:to", async ({ event, context }) => {
  await context.db.insert(call).values({ hash: event.transaction.hash, block: event.block.hash });
});
