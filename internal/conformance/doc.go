// Package conformance tests the whole service, as a user would run it, with third-party chains and
// recorded conversations: it imports a chain, serves it and sends requests over HTTP.
//
// Package vectors documents where the test data comes from and what happens without it.
package conformance
