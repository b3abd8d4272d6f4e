package gateway

import "ashlar/jsonrpc"

// forbidden is the error of a request that a rule refuses, whose text names the rule.
func forbidden(rule string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeForbidden, Message: rule}
}
