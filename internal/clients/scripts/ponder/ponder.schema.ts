import { onchainTable } from "ponder";

export const call = onchainTable("call", (t) => ({ id: t.text().primaryKey() }));
