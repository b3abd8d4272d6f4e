package gateway

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// refusal says why a request or one of its calls was refused.
type refusal struct {
	status int // HTTP status
	reason Reason
	cause  usage.Cause   // for the key's owner; 0 if no key is known
	wait   time.Duration // when to retry; 0: never
	err    *jsonrpc.Error
}

// Error implements error.
func (r *refusal) Error() string { return r.err.Message }

// Reason is a kind of refusal, for metrics.
type Reason int

// The reasons for refusals.
const (
	RefusedKey     Reason = iota // no key, or not a valid one
	RefusedRule                  // a rule of the key, or the server's origins
	RefusedRate                  // the key's rate
	RefusedQuota                 // the key's quota of the day
	RefusedAddress               // too many failures from an address
	RefusedBusy                  // all slots taken and too many waiting
	RefusedMemory                // the memory for bodies and answers is used up
	RefusedSize                  // a body over the limit
	RefusedSocket                // too many WebSockets, in total or of one holder
	reasons                      // their number
)

// String returns the reason as the label of a metric.
func (r Reason) String() string {
	return [reasons]string{"key", "rule", "rate", "quota", "address", "busy", "memory", "size", "sockets"}[r]
}

// refusals counts refusals by reason.
type refusals [reasons]atomic.Uint64

func (c *refusals) count(r Reason) { c[r].Add(1) }

// write answers a whole request, a call with an id or none, with the refusal.
func (r *refusal) write(w http.ResponseWriter, id []byte) {
	r.setHeader(w.Header())
	refuseError(w, r.status, id, r.err)
}

// setHeader sets Retry-After, and exposes it to pages in browsers.
func (r *refusal) setHeader(header http.Header) {
	if r.wait > 0 {
		header.Set("Retry-After", strconv.Itoa(retryAfter(r.wait)))
		expose(header, "Retry-After")
	}
}

func noKey(message string) *refusal {
	return &refusal{status: http.StatusUnauthorized, reason: RefusedKey,
		err: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message}}
}

// forbidden returns the refusal by a rule; the message names the rule.
func forbidden(cause usage.Cause, rule string) *refusal {
	return &refusal{status: http.StatusForbidden, reason: RefusedRule, cause: cause,
		err: &jsonrpc.Error{Code: jsonrpc.CodeForbidden, Message: rule}}
}

// backoff is the error data that clients of large providers understand.
type backoff struct {
	See     string  `json:"see,omitempty"`
	Current float64 `json:"current_rps"`
	Allowed float64 `json:"allowed_rps"`
	Seconds float64 `json:"backoff_seconds"`
}

// spentDay is the error data of a quota. A rate would mislead: the credits of a day that are
// spent in an hour are few per second.
type spentDay struct {
	See     string  `json:"see,omitempty"`
	Used    uint64  `json:"used_credits"`
	Asked   int     `json:"asked_credits"`
	Allowed uint64  `json:"allowed_credits"`
	Seconds float64 `json:"backoff_seconds"`
}

// tooFast is the refusal of calls over a rate. In a batch, only the message says so, and proxies look for "rate limit".
func tooFast(reason Reason, message, see string, e limit.Excess) *refusal {
	if reason == RefusedRate {
		message += ": the rate limit is " + inCredits(e.Allowed) + " per second"
	}
	return &refusal{status: http.StatusTooManyRequests, reason: reason, cause: usage.Rate, wait: e.Wait,
		err: &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: message,
			Data: backoff{see, e.Current, e.Allowed, e.Wait.Seconds()}}}
}

// overQuota is the refusal of calls over a quota. Proxies look for "reached the quota".
func overQuota(message string, data spentDay, wait time.Duration) *refusal {
	message += ": reached the quota of " + inCredits(float64(data.Allowed))
	data.Seconds = wait.Seconds()
	return &refusal{status: http.StatusTooManyRequests, reason: RefusedQuota, cause: usage.Quota, wait: wait,
		err: &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: message, Data: data}}
}

// inCredits returns an amount with its unit.
func inCredits(amount float64) string {
	if amount == 1 {
		return "1 credit"
	}
	return strconv.FormatFloat(math.Round(amount*100)/100, 'f', -1, 64) + " credits"
}

// busyTime is the retry time of a busy server.
const busyTime = time.Second

func busy(reason Reason) *refusal {
	return unavailable(reason, "the server is busy: try again later")
}

// tooManySockets is the refusal for a holder with too many WebSockets.
func tooManySockets(most int) *refusal {
	r := unavailable(RefusedSocket, fmt.Sprintf("too many WebSockets: expected at most %d at once of one account, or of a key without one", most))
	r.status, r.cause = http.StatusTooManyRequests, usage.Sockets
	return r
}

// unserved is the refusal for a network that is taken out of service while requests for it
// arrive.
func unserved() *refusal {
	return unavailable(RefusedBusy, "the network is being taken out of service: try again later")
}

func unavailable(reason Reason, message string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, reason: reason, cause: usage.Busy, wait: busyTime,
		err: &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: message,
			Data: map[string]float64{"backoff_seconds": busyTime.Seconds()}}}
}
