package gateway

import (
	"encoding/json"
	"net/http"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
)

// countFailure counts a failed call for its key. cause is why it was refused, 0 if it was not.
func (e *exchange) countFailure(series usage.Series, c *jsonrpc.Completed, cause usage.Cause) {
	if cause == 0 {
		e.caller.usage.Called(series, c.Took, c.Fault.Code)
	} else {
		e.caller.usage.Refused(series, c.Took, cause)
	}
	e.settings.failures.Add(e.key.ID, failures.Failure{
		Network: e.network.name, Method: c.Method, Code: c.Fault.Code, Message: messageOf(c.Fault), Cause: cause, Took: c.Took, Origin: e.origin,
	}, c.Params)
}

// messageOf returns the message of an error with its details.
func messageOf(fault *jsonrpc.Error) string {
	if details, ok := fault.Data.(string); ok && details != "" && len(details) < maxDetails {
		return fault.Message + ": " + details
	}
	return fault.Message
}

// maxDetails is the length in bytes of the details of an error that are kept with its message.
const maxDetails = 200

// countRefused counts the refusal of the whole request for its key.
func (e *exchange) countRefused(r *refusal) { e.settings.countRefused(e.key, e.network, e.origin, r) }

// countUnread counts a request for its key in which no call could be read. answer is the error
// that it got.
func (e *exchange) countUnread(answer []byte) {
	type fault struct{ Error *jsonrpc.Error }
	var one fault
	if json.Unmarshal(answer, &one) != nil {
		var batch []fault
		if json.Unmarshal(answer, &batch) != nil || len(batch) == 0 {
			return
		}
		one = batch[0]
	}
	if one.Error != nil {
		e.countFailure(e.network.unknown, &jsonrpc.Completed{Fault: one.Error}, e.refusedCall)
	}
}

// countRefused counts a request for its key that was refused as a whole.
func (s *settings) countRefused(key *account.Key, network *served, origin string, r *refusal) {
	meter := s.callers.usage.Meter(key.ID)
	if r.cause == 0 {
		meter.Called(network.unknown, 0, r.err.Code)
	} else {
		meter.Refused(network.unknown, 0, r.cause)
	}
	s.failures.Add(key.ID, failures.Failure{
		Network: network.name, Code: r.err.Code, Message: r.err.Message, Cause: r.cause, Origin: origin,
	}, nil)
}

// invalid returns the refusal of a request that is not one of JSON-RPC over HTTP.
func invalid(status int, message string) *refusal {
	return &refusal{status: status, err: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message}}
}

// originOf returns the origin of the web page that sent a request; empty for other clients.
func originOf(r *http.Request) string { return header(r, "Origin") }
