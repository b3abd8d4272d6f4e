package app

import (
	"cmp"
	"fmt"

	"ashlar/app/config"
	"ashlar/dashboard/chart"
	"ashlar/dashboard/site"
	"ashlar/gateway"
)

// unlimited is shown for a limit that is not set.
const unlimited = "none"

// shownLimits returns the limits and their current use for the dashboard.
func shownLimits(c *config.Config, now gateway.Stats) []site.LimitGroup {
	l, s := &c.Limits, &c.Sockets
	count := func(n int) string { return chart.Grouped(float64(n)) }
	refused := func(r gateway.Reason) string { return fmt.Sprintf("%d refused", now.Refused[r]) }
	return []site.LimitGroup{
		{Title: "Per client", Public: true, Limits: []site.Limit{
			{Entry: "limits.address_rate", Meaning: "credits per second for all requests from one address", Most: orUnlimited(l.AddressRate)},
			{Entry: "limits.key_rate", Meaning: "credits per second for a key; an account’s own rules can only lower it", Most: orUnlimited(l.KeyRate), Now: refused(gateway.RefusedRate)},
			{Entry: "limits.key_daily", Meaning: "credits per day for a key; an account’s own rules can only lower it", Most: orUnlimited(l.KeyDaily), Now: refused(gateway.RefusedQuota)},
			{Entry: "limits.account_rate", Meaning: "credits per second for all keys of an account without limits of its own", Most: orUnlimited(l.AccountRate)},
			{Entry: "limits.account_daily", Meaning: "credits per day for all keys of an account without limits of its own", Most: orUnlimited(l.AccountDaily)},
			{Entry: "limits.address_fails", Meaning: "requests per second without a valid key from one address", Most: orUnlimited(l.AddressFails), Now: refused(gateway.RefusedAddress)},
			{Entry: "accounts.keys", Meaning: "keys of an account at once", Most: count(c.Accounts.Keys)},
			{Entry: "accounts.teams", Meaning: "teams that a user may own", Most: count(c.Accounts.Teams)},
		}},
		{Title: "Per request", Public: true, Limits: []site.Limit{
			{Entry: "limits.body", Meaning: "size of its body", Most: inBytes(l.Body), Now: refused(gateway.RefusedSize)},
			{Entry: "limits.batch_calls", Meaning: "calls in a batch", Most: count(l.BatchCalls)},
			{Entry: "limits.batch_bytes", Meaning: "size of the answer to a batch", Most: inBytes(l.BatchBytes)},
			{Entry: "limits.answer_bytes", Meaning: "size of the answer to a call", Most: inBytes(l.AnswerBytes)},
			{Entry: "limits.time", Meaning: "time to answer it", Most: l.Time.String()},
		}},
		{Title: "Whole service", Limits: []site.Limit{
			{Entry: "limits.light_calls", Meaning: "calls of cheap methods at once", Most: count(cmp.Or(l.LightCalls, gateway.DefaultLight())), Now: occupied(now.LightRunning, now.LightWaiting)},
			{Entry: "limits.heavy_calls", Meaning: "calls of other methods at once", Most: count(cmp.Or(l.HeavyCalls, gateway.DefaultHeavy())), Now: occupied(now.HeavyRunning, now.HeavyWaiting)},
			{Entry: "limits.waiting_calls", Meaning: "waiting calls of each kind", Most: count(l.WaitingCalls), Now: refused(gateway.RefusedBusy)},
			{Entry: "limits.memory", Meaning: "memory for bodies and answers", Most: inBytes(l.Memory), Now: inBytes(config.Bytes(now.HeldBytes))},
			{Entry: "sockets.open", Meaning: "WebSocket connections", Most: count(s.Open), Now: count(now.Sockets)},
			{Entry: "sockets.each", Meaning: "WebSocket connections of one account, or of a key without one", Most: count(s.Each), Now: refused(gateway.RefusedSocket)},
		}},
	}
}

func orUnlimited[N float64 | uint64](n N) string {
	if n == 0 {
		return unlimited
	}
	if n != N(uint64(n)) {
		return fmt.Sprint(n) // a rate with a fraction
	}
	return chart.Grouped(float64(n))
}

func inBytes(b config.Bytes) string {
	if text := b.String(); text[len(text)-1] == 'B' {
		return text
	}
	return chart.Grouped(float64(b)) + " bytes"
}

func occupied(now, waiting int) string {
	if waiting == 0 {
		return fmt.Sprint(now)
	}
	return fmt.Sprintf("%d, %d waiting", now, waiting)
}
