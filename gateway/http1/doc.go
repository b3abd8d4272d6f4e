// Package http1 answers the usual requests of JSON-RPC clients, short POST requests on
// connections that stay open, in less time than net/http. It leaves everything else to
// net/http.
//
// A [Server] reads the head of a request. If the head is of the plain form below, it calls
// the handler itself. Otherwise it hands the connection over with all bytes of the request,
// so net/http parses it from the start, answers it and keeps the connection:
//
//	POST /path HTTP/1.1           no query, and no character that a URL would escape
//	Host: one, of letters, digits and .:-_[]
//	Content-Length: one
//	Connection: keep-alive, or absent
//	other fields                  of printable ASCII; not Transfer-Encoding, Expect, Upgrade,
//	                              Trailer or Pragma
//
// So this package has no error answers of its own, and what it does not understand, it never
// interprets. What it accepts, it parses as net/http does; a fuzz test compares both.
//
// The difference to net/http, which is about a third of a short answer's processor time:
//
//   - Requests and answers of a connection use the same memory, one after the other.
//   - Nobody reads the connection while a short request is answered. Only once the handler asks
//     for the end of the request's context, or checks it after 10 ms, a goroutine watches whether
//     the client disconnects.
//   - Head and body of a short answer are one write.
package http1
