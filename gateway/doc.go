// Package gateway serves JSON-RPC over HTTP: it finds the network that a request is
// for, checks its API key, and hands its body to package jsonrpc.
//
//	POST /v3/<key>            the network by the Host header, or the only one there is
//	POST /<network>/v3/<key>  the network by its name, at any host
//	GET  /healthz             200 as long as the process answers at all
//	GET  /readyz              200 when it can answer questions, else 503
//
// What JSON-RPC can say is said with status 200, parse errors included; a request
// that holds only notifications gets 200 and no body. What is wrong with the HTTP
// request has a status of its own and a JSON-RPC error with id null as its body:
//
//	401  no key, or not a valid one
//	404  no such path or network
//	405  not a POST
//	413  a body over the limit, before or after decompression
//	415  a content type or encoding that is not understood
//	400  a body that did not arrive as announced
//
// A key is in the URL, so no URL is ever logged or repeated in an error.
package gateway
