package gateway

import (
	"net/http"

	"ashlar/jsonrpc"
)

// verifiedHeader says how the answer was verified: the weakest verification of the calls in
// it. An answer without a method's result or error has `none`.
const verifiedHeader = "Ashlar-Verified"

// verifiedValues are the values of the header. They are shared because net/http only reads
// them.
var verifiedValues = [...][]string{
	jsonrpc.Unverified: {jsonrpc.Unverified.String()},
	jsonrpc.ByHeader:   {jsonrpc.ByHeader.String()},
	jsonrpc.Proven:     {jsonrpc.Proven.String()},
	jsonrpc.Executed:   {jsonrpc.Executed.String()},
}

// setVerified sets the header, and exposes it to pages in browsers.
func setVerified(header http.Header, v jsonrpc.Verification) {
	header[verifiedHeader] = verifiedValues[v]
	expose(header, verifiedHeader)
}
