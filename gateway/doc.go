// Package gateway serves JSON-RPC over HTTP and WebSocket. It finds the network of a
// request, checks its API key, and passes its body to package jsonrpc.
//
//	POST /v3/<key>               the network of the Host header, else the only network
//	POST /<network>/v3/<key>     the named network, at any host
//	GET  /ws/v3/<key>            the same by WebSocket
//	GET  /<network>/ws/v3/<key>
//	GET  /healthz                200 while the process is running
//	GET  /readyz                 200 if it can answer requests, else 503
//	anything else                pages, at the hosts of [Pages]
//
// Errors that JSON-RPC can express, including parse errors, have status 200. A request that
// holds only notifications gets 200 and an empty body. Errors of the HTTP request have
// their own status, and a JSON-RPC error with id null as the body:
//
//	400  a body that did not arrive as announced
//	401  no key, or not a valid one
//	403  forbidden by a rule of the key, or a WebSocket from an origin that is not allowed
//	404  no such path or network
//	405  not a POST
//	413  a body over the limit, before or after decompression
//	415  an unknown content type or encoding
//	426  a WebSocket path without a WebSocket handshake
//	429  over a limit of the key or its account, or too many requests without a valid key
//	503  the server is busy or stopping, or has no memory for the body or place for another WebSocket
//
// A WebSocket carries requests and answers as messages. It has one reader goroutine and one
// goroutine for each message in progress, which also writes finished answers, one at a
// time. All queues are bounded. While as many messages as allowed are in progress, or more bytes
// of answers wait than fit its queue, the server does not read. A client that takes too long to
// read a message, or lets more messages of subscriptions wait than fit its queue, is
// disconnected. One goroutine for all connections sends pings and ends connections that are idle
// or whose key has ended.
//
// A key is part of the URL, so URLs are never logged or repeated in errors.
package gateway
