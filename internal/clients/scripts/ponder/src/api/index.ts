import { Hono } from "hono";
import { count } from "ponder";
import { db } from "ponder:api";
import { call } from "ponder:schema";

const app = new Hono();
app.get("/calls", async (c) => c.json((await db.select({ n: count() }).from(call))[0].n));
export default app;
