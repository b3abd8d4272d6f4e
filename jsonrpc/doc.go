// Package jsonrpc answers JSON-RPC 2.0: it reads a request or a batch from bytes,
// calls the methods it names, and appends the answer. It knows no transport and
// no chain.
//
// What it promises:
//   - A request is strict JSON in UTF-8 (RFC 8259), nested at most [MaxDepth] deep,
//     with nothing after it. Members may come in any order; unknown ones are
//     ignored; of a repeated one the last counts, as in encoding/json and geth.
//   - An id (a string, a number or null) comes back exactly as it was sent, byte
//     for byte. A request without an id is a notification: it is run, and
//     nothing is answered.
//   - Answers of a batch stand in the order of its calls, whatever ran in parallel.
//   - A method that panics costs its caller an internal error and the process nothing.
//   - A call that succeeds allocates nothing here: methods get slices of the request
//     and append to the buffer that goes out.
//
// Where JSON-RPC leaves a choice, answers are those of geth's rpc package, which
// is what clients were written against. Beyond geth, `parse error` and `invalid
// request` say in data what was found wrong.
package jsonrpc
