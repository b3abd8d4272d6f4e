import { Hono } from "hono";
import { db } from "ponder:api";
import { block, call } from "ponder:schema";

const app = new Hono();
app.get("/blocks", async (c) => c.json(await db.select().from(block).orderBy(block.number)));
app.get("/calls", async (c) => c.json(await db.select().from(call)));
export default app;
