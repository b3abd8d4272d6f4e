package keys

import (
	"slices"
	"testing"
	"time"

	"ashlar/account"
)

// Usage is read of the keys that can have some: an account keeps every key that it ever had.
func TestIDs(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	before := noon.AddDate(0, 0, -3)
	all := []account.Key{
		{ID: account.KeyID{1}}, {ID: account.KeyID{2}, Revoked: noon.Add(-time.Hour)}, {ID: account.KeyID{3}, Revoked: before},
		{ID: account.KeyID{4}, Expires: before}, {ID: account.KeyID{5}, Expires: noon.Add(time.Hour)}, {ID: account.KeyID{6}, Expires: noon, Revoked: before},
	}
	if got, want := IDs(account.ID{9}, all, noon), []account.KeyID{{9}, {1}, {2}, {5}}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	if got := IDs(account.ID{9}, all, time.Time{}); len(got) != 1+len(all) {
		t.Errorf("since ever: %v", got)
	}
}

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
