import { ponder } from "ponder:registry";
import { call } from "ponder:schema";

ponder.on("Token.transfer()", async ({ event, context }) => {
  await context.db.insert(call).values({ id: event.id });
});
