import { onchainTable } from "ponder";

// A block, and slot 0 of the counter after it.
export const block = onchainTable("block", (t) => ({ hash: t.hex().primaryKey(), number: t.integer(), count: t.hex() }));

// A call of the counter.
export const call = onchainTable("call", (t) => ({ hash: t.hex().primaryKey(), block: t.hex() }));
