package jsonrpc

import "strings"

// Explanation describes a kind of error to people. The documentation lists all of them, and
// the console explains an answer with one.
type Explanation struct {
	Name    string // identifies it in links, such as "rate"
	Code    int
	Message string // a part of every message of this kind; empty: any other message with the code
	Meaning string
	Remedy  string
}

// Explanations returns the kinds of errors that any method can answer, or that several
// methods share. Among those with the same code, the one without a Message comes last.
func Explanations() []Explanation {
	return []Explanation{
		{"parse", CodeParse, "parse error", "The body is empty or is not JSON in UTF-8.", "`data` says what was expected, and where. Look for a missing quote, bracket or comma there."},
		{"empty-batch", CodeInvalidRequest, "empty batch", "The request is an array without calls.", "Put at least one call into a batch."},
		{"batch", CodeInvalidRequest, "batch too large", "The batch has more calls than the server accepts.", "`data` says how many are allowed. Split the batch."},
		{"name", CodeInvalidRequest, "method name too long", "The name is longer than that of any method.", "Check the member `method`."},
		{"no-key", CodeInvalidRequest, "project id required in the url", "The URL has no key.", "Put your key after `/v3/` in the URL."},
		{"key", CodeInvalidRequest, "invalid project id", "The key is not valid: it is misspelled, was revoked or replaced, or has expired, or its account is disabled.", "Compare the URL with the key that you were shown. If it is lost, create or rotate a key in the dashboard."},
		{"password", CodeInvalidRequest, "invalid project secret", "The key has a password, which the request did not send.", "Send the password with HTTP's Basic authentication, with any user name."},
		{"network", CodeInvalidRequest, "no such network", "The URL names no network of this server.", "Begin the path with the name of a network, as in `/NETWORK/v3/KEY`."},
		{"body", CodeInvalidRequest, "request body too large", "The body is longer than the server accepts, as sent or decompressed.", "Split a batch, or send less data."},
		{"request", CodeInvalidRequest, "", "The body is JSON, but not a request.", "`data` says what was expected. A request is an object with `jsonrpc`, `id`, `method` and `params`."},
		{"subscription", CodeMethodNotFound, "notifications not supported", "Subscriptions need a connection that stays open.", "Use the WebSocket URL, which begins with `ws` and has `/ws/v3/`."},
		{"kind", CodeMethodNotFound, "subscription in eth namespace", "There is no such kind of subscription.", "Use one of those that `eth_subscribe` describes."},
		{"method", CodeMethodNotFound, "", "The network has no method with this name.", "`data` names a method with a similar name, if there is one. Names are case-sensitive."},
		{"params", CodeInvalidParams, "", "A parameter is missing, or its value is not valid. Arguments are counted from 0.", "Compare the parameters with the description of the method."},
		{"internal", CodeInternal, "", "The server could not answer because of a fault of its own, which its log describes.", "Try again. If it happens again, tell the operator of the server."},
		{"no-block", CodeServer, "header not found", "The block does not exist, or does not exist yet.", "Compare its number with that of `latest`."},
		{"no-hash", CodeServer, "header for hash not found", "No block with this hash is stored. It may belong to another chain, or to a branch that the chain left.", "Check the hash and the network."},
		{"unsafe", CodeServer, "block not found", "Nothing says which block is safe or finalized, as on a chain from files.", "Name the block by its number, or by `latest`."},
		{"filter", CodeServer, "filter not found", "The filter was removed, was not polled for too long, or belongs to another account.", "Create another filter."},
		{"gas", CodeServer, "out of gas", "The call needs more gas than it has, or than calls on this server may use.", "Give it more gas, or do less in one call."},
		{"memory", CodeServer, "execution aborted (memory", "The call needs more memory than calls on this server may use.", "Do less in one call."},
		{"aborted", CodeServer, "execution aborted", "The call ran for longer than calls on this server may.", "Do less in one call."},
		{"unconfirmed", CodeServer, "no node confirmed the transaction", "A node that was sent the transaction gave no answer. It may have taken it.", "Send the same transaction again, which is harmless. Sign no other until a node has confirmed it."},
		{"trace-index", CodeServer, "has no trace index", "The network was created without an index that the method needs.", "Use a network that has it."},
		{"failed", CodeServer, "", "The call failed. The message says why.", "See the description of the method."},
		{"resource", CodeNotFound, "", "The block does not have what was asked for.", "`data` says why."},
		{"timeout", CodeTimeout, "request timed out", "The time of the request was over before this call was answered.", "Ask for less at once: fewer blocks, or fewer calls in a batch."},
		{"forbidden", CodeForbidden, "", "A rule of the key or of the server forbids the call. The message names it.", "Change the rules of the key in the dashboard, or use another key."},
		{"size", CodeTooLarge, "", "The answer to the call, or the answers to the batch, are larger than the server sends.", "Ask for less at once: fewer blocks, or fewer calls in a batch."},
		{"rate", CodeLimitExceeded, "rate", "The key, its account or the client's address used more credits in the last seconds than its limit allows.", "Wait as many seconds as `backoff_seconds` and `Retry-After` say, and send fewer calls a second. Libraries retry by themselves if they are set up to."},
		{"quota", CodeLimitExceeded, "quota", "The key or its account has used up its credits of the day.", "Wait until 00:00 UTC, or ask the operator for a higher limit."},
		{"busy", CodeLimitExceeded, "server is", "The server has too much to do, or is about to stop.", "Try again after as many seconds as `Retry-After` says."},
		{"store", CodeLimitExceeded, "store cannot be reached", "The server cannot reach its data for now.", "Try again after as many seconds as `Retry-After` says."},
		{"unserved", CodeLimitExceeded, "taken out of service", "An operator is taking the network out of service, for a while or for good.", "Try again later, or use another network."},
		{"results", CodeLimitExceeded, "query returned more than", "The filter matches more than one answer may hold.", "Ask for fewer blocks. `data` suggests a range that fits."},
		{"query-time", CodeLimitExceeded, "query timeout", "The search took longer than one may.", "Ask for fewer blocks, or for fewer addresses or topics."},
		{"limit", CodeLimitExceeded, "", "A limit was reached. The message names it.", "Ask for less at once, or end what you no longer need."},
		{"nonce-low", CodeNonceTooLow, "", "The nonce of a simulated call is below the sender's. An account has as many as it has sent transactions.", "Use the sender's next nonce, which the message names, or leave it out."},
		{"nonce-high", CodeNonceTooHigh, "", "The nonce of a simulated call is above the sender's, so it would wait for other transactions.", "Use the sender's next nonce, which the message names, or leave it out."},
		{"base-fee", CodeBaseFee, "", "The fee per gas of a simulated call is below the base fee of its block.", "Raise `maxFeePerGas`, lower `baseFeePerGas` of the block, or simulate without `validation`."},
		{"intrinsic-gas", CodeIntrinsicGas, "", "The gas of a simulated call is less than any call with its data needs.", "Give it more gas, or leave the gas out."},
		{"funds", CodeInsufficientFunds, "", "The sender of a simulated call cannot pay for its value and gas.", "Give the sender a balance with `stateOverrides`, or send less."},
		{"block-gas", CodeBlockGas, "", "The simulated block has less gas left than a call in it asks for.", "Give the call less gas, raise `gasLimit` of the block, or move the call to another block."},
		{"block-order", CodeBlockNumber, "", "The number of a simulated block is not above that of the block before.", "Put the blocks in the order of their numbers, or leave the numbers out."},
		{"time-order", CodeBlockTime, "", "The time of a simulated block is not after that of the block before.", "Put the blocks in the order of their times, or leave the times out."},
		{"precompile-self", CodePrecompileSelf, "", "A state override moves a precompiled contract to the address that it has.", "Move it to another address, or leave it where it is."},
		{"precompile-twice", CodePrecompileTwice, "", "State overrides move two contracts to the same address.", "Move each precompiled contract to an address of its own."},
		{"not-eoa", CodeNotEOA, "", "The sender of a simulated call is a contract, which sends no transactions.", "Use another sender."},
		{"init-code", CodeInitCode, "", "The code that creates a contract is longer than the rules of the chain allow.", "Create a smaller contract, or divide it."},
		{"call-limit", CodeClientLimit, "", "One call asks for more than a call may: slots, calls or blocks. The message says how many.", "Split the call."},
		{"reverted", CodeReverted, "", "The contract reverted the call. `data` holds what it returned, often with a reason, which the message shows.", "Check the arguments, the sender and the block. A revert is an answer of the contract, not a fault of the server."},
		{"not-included", CodeNotIncluded, "", "The transaction was taken, but no block had it in time.", "It still waits to be included. Ask for its receipt with the hash in `data`, and send it again with higher fees if it stays out."},
		{"pruned", CodePruned, "", "The network does not store history that the call needs.", "Ask for a later block, or use a network with full history."},
	}
}

// Explain returns the explanation of an error, and false if there is none.
func Explain(code int, message string) (Explanation, bool) {
	for _, e := range Explanations() {
		if e.Code == code && strings.Contains(message, e.Message) {
			return e, true
		}
	}
	return Explanation{}, false
}
