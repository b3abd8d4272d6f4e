// Package gateway serves JSON-RPC over HTTP and WebSocket: it finds the network that
// a request is for, checks its API key, and hands its body to package jsonrpc.
//
//	POST /v3/<key>               the network by the Host header, or the only one there is
//	POST /<network>/v3/<key>     the network by its name, at any host
//	GET  /ws/v3/<key>            the same by WebSocket
//	GET  /<network>/ws/v3/<key>
//	GET  /healthz                200 as long as the process answers at all
//	GET  /readyz                 200 when it can answer questions, else 503
//	anything else                at the hosts of [Pages], theirs
//
// What JSON-RPC can say is said with status 200, parse errors included; a request
// that holds only notifications gets 200 and no body. What is wrong with the HTTP
// request has a status of its own and a JSON-RPC error with id null as its body:
//
//	400  a body that did not arrive as announced
//	401  no key, or not a valid one
//	403  what a rule of the key forbids, or a WebSocket for a page of an origin that is not allowed
//	404  no such path or network
//	405  not a POST
//	413  a body over the limit, before or after decompression
//	415  a content type or encoding that is not understood
//	426  no handshake where a WebSocket was expected
//	429  over a limit of the key or its account, or too many requests without a valid key
//	503  the server is busy or stopping, or has no room for the body or another WebSocket
//
// A WebSocket carries requests and answers as messages. It is served by one
// goroutine that reads and one for each message that is being answered, which also
// writes what is ready, one at a time. All its queues are bounded: what a
// client sends too fast waits with the client, and a client that is too slow to
// read is disconnected. The server's pings, idle times and the end of keys are
// looked after by one goroutine for all connections.
//
// A key is in the URL, so no URL is ever logged or repeated in an error.
package gateway
