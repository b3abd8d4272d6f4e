package keys

import (
	"testing"
	"time"

	"ashlar/account"
)

func TestGauges(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 29, 30, 0, time.UTC)
	bound := func(used, most float64) account.Allowance {
		return account.Allowance{PerDay: []account.Bound{{Source: account.KeyRule, Credits: most, Used: used}}}
	}
	for _, c := range []struct {
		allowance account.Allowance
		want      gauge
	}{
		{account.Allowance{}, gauge{Used: "42"}},
		{bound(0, 10), gauge{"0", "10", 0, "", "set in the key’s rules", "resets at 00:00 UTC, in 11 h 30 min"}},
		{bound(8, 10), gauge{"8", "10", 80, "warn", "set in the key’s rules", "resets at 00:00 UTC, in 11 h 30 min"}},
		{bound(12, 10), gauge{"12", "10", 100, "bad", "set in the key’s rules", "resets at 00:00 UTC, in 11 h 30 min"}},
	} {
		if got := NewAllowance(c.allowance, 42, noon); got.Today != c.want || got.Rate.Most != "" {
			t.Errorf("%+v: %+v, expected %+v", c.allowance, got.Today, c.want)
		}
	}
	if got := UntilMidnight(noon.Add(11*time.Hour + 10*time.Minute)); got != "20 min" {
		t.Errorf("until midnight: %s", got)
	}
}
