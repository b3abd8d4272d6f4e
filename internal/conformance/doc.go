// Package conformance holds the tests that run the whole service on chains and
// conversations that others recorded: ashlar import, ashlar serve, and questions
// over HTTP, as a user would.
//
// The chains and conversations are third-party test data; package vectors says
// where they come from and what happens without them.
package conformance
