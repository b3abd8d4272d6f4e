package gateway

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
	"ashlar/upstream"
)

// Another Ashlar in front learns from the text of a refusal what it means. What another node, or the same one later, may
// answer must not count as the answer of the chain, nor as too many logs.
func TestMeaningOfRefusals(t *testing.T) {
	excess := limit.Excess{Current: 30, Allowed: 10, Wait: time.Second}
	spent := spentDay{Used: 2990, Asked: 50, Allowed: 3000}
	debug := &jsonrpc.Method{Name: "debug_x"}
	restricting := &gate{network: "mainnet-archive", restricted: []string{"debug_*"}}
	lost := &gate{unavailable: func(error) bool { return true }}
	for _, c := range []struct {
		refused *refusal
		means   upstream.Means
	}{
		{busy(RefusedBusy), upstream.MeansFailure},
		{unserved(), upstream.MeansFailure},
		{lost.lacked(limit.ErrMemory), upstream.MeansFailure},
		{tooFast(RefusedRate, "request rate exceeded", "", excess), upstream.MeansFailure},
		{tooFast(RefusedRate, addressExceeded, "", excess), upstream.MeansFailure},
		{tooFast(RefusedAddress, "too many requests without a valid key from this address", "", excess), upstream.MeansFailure},
		{overQuota("daily quota exceeded", spent, time.Hour), upstream.MeansFailure},
		{overQuota("daily quota of the account exceeded", spent, time.Hour), upstream.MeansFailure},
		{restricting.forbids(t.Context(), &exchange{key: &account.Key{}}, debug, true, nil), upstream.MeansUnsupported},
		{ruled(t.Context(), &account.Rules{Methods: []string{"eth_call"}}, debug, nil), upstream.MeansUnsupported},
		{forbidden(usage.Network, "network not allowed: the key's rules do not list mainnet-archive"), upstream.MeansFailure},
		{noKey("invalid project id"), upstream.MeansAnswer},
	} {
		e := &upstream.NodeError{Code: c.refused.err.Code, Message: c.refused.err.Message}
		if means, tooMuch := upstream.Meaning(e), upstream.IsTooMuch(e); means != c.means || tooMuch {
			t.Errorf("%d %s: means %d, too much: %t; expected %d, false", e.Code, e.Message, means, tooMuch, c.means)
		}
		if c.refused.status == http.StatusServiceUnavailable && !strings.HasSuffix(e.Message, ": try again later") {
			t.Errorf("%q does not say when to try again, which older ones in front need", e.Message)
		}
	}
}

// The text of a limit also ends a WebSocket, which takes at most 123 bytes. It has the words by which proxies know limits.
func TestTextsOfLimits(t *testing.T) {
	for text, words := range map[string]string{
		tooFast(RefusedRate, addressExceeded, "", limit.Excess{Allowed: 1. / 3}).Error():                                       "rate limit",
		tooFast(RefusedRate, "request rate of the account exceeded", "", limit.Excess{Allowed: math.MaxUint64}).Error():        "rate limit",
		overQuota("daily quota of the account exceeded", spentDay{Allowed: math.MaxUint64}, time.Hour).Error():                 "reached the quota",
		overQuota("daily quota exceeded", spentDay{Used: 2990, Asked: 50, Allowed: 3000}, time.Hour).Error():                   "reached the quota of 3000 credits",
		tooFast(RefusedRate, "request rate exceeded", "", limit.Excess{Current: 30, Allowed: 12.5, Wait: time.Second}).Error(): "the rate limit is 12.5 credits per second",
	} {
		if !strings.Contains(text, words) || len(text) > 123 {
			t.Errorf("%q, %d bytes; expected %q in it, and at most 123", text, len(text), words)
		}
	}
}
