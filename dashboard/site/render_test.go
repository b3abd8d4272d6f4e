package site

import (
	"testing"
	"time"

	"ashlar/jsonrpc"
)

// Waiting times have one or two units that people use for them.
func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		40 * time.Microsecond:            "40 µs",
		2300 * time.Microsecond:          "2.3 ms",
		90 * time.Second:                 "90.0 s",
		10 * time.Minute:                 "10 min",
		5*time.Hour + 20*time.Minute:     "5 h 20 min",
		99*time.Hour + 59*time.Second:    "4 days",
		time.Hour - 500*time.Millisecond: "59 min",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%s is shown as %q, expected %q", d, got, want)
		}
	}
}

func TestStateOfLateNetwork(t *testing.T) {
	n := Network{Follows: true, Behind: 1234567, Rate: 1234, Remaining: 99*time.Hour + 7*time.Second}
	if text, mood := n.State(); text != "1,234,567 blocks behind, 1,234 blocks/s, 4 days remaining" || mood != "warn" {
		t.Errorf("%q, %q", text, mood)
	}
	n = Network{Follows: true, Behind: 1}
	if text, _ := n.State(); text != "1 block behind" {
		t.Errorf("one block: %q", text)
	}
}

// All is not the same as nearly all, and nothing not the same as hardly anything.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		part, whole uint64
		want        string
	}{
		{0, 0, "0 %"}, {0, 5, "0 %"}, {1, 10_000, "< 0.1 %"}, {1, 3, "33.3 %"}, {999, 1000, "99.9 %"}, {9_999, 10_000, "> 99.9 %"}, {5, 5, "100 %"},
	} {
		if got := Share(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: %q, expected %q", c.part, c.whole, got, c.want)
		}
	}
}

// Numbers of every kind have separators between the thousands.
func TestGroupedNumbers(t *testing.T) {
	methods := []Method{{Method: &jsonrpc.Method{Name: "a"}, Credits: 1000}, {Method: &jsonrpc.Method{Name: "b"}, Credits: 25_000}}
	if got := CostRange([]Network{{Methods: methods}}); got != "from 1,000 to 25,000 credits" {
		t.Errorf("prices are %q", got)
	}
	if got := Amount(uint64(1_234_567), "call"); got != "1,234,567 calls" {
		t.Errorf("an amount is %q", got)
	}
}
