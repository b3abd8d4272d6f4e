// Package jsonrpc answers JSON-RPC 2.0: it reads a request or a batch from bytes,
// calls the methods it names, and appends the answer. It knows no transport and
// no chain.
//
// Its guarantees:
//   - A request is strict JSON in UTF-8 (RFC 8259), nested at most [MaxDepth] deep,
//     with nothing after it. Members may come in any order, their names in any case.
//     Unknown members are ignored, and of repeated ones the last counts, as in
//     encoding/json and geth.
//   - An id (a string, a number or null) is returned byte for byte. A request without
//     an id is a notification: it runs, and nothing is answered.
//   - Calls of a batch run one after the other, and are answered in their order.
//   - A method that panics gives its caller an internal error; the process goes on.
//   - No result, error or batch of answers is larger than its limit. Methods can tell
//     early that a result will not fit (see [Room]).
//   - A call that succeeds allocates nothing here, if its transport knows [ServerKey]:
//     methods get slices of the request and append to the buffer that goes out.
//
// Where JSON-RPC leaves a choice, answers are those of geth's rpc package, which
// is what clients were written against. Beyond geth, `parse error` and `invalid
// request` say in data what was found wrong.
package jsonrpc
