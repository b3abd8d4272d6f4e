package dashboard

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
)

func TestUsage(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	key, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "=evil"})
	if err != nil {
		t.Fatal(err)
	}
	today := day(time.Now())
	s.lines = []usage.Line{
		{Time: today.AddDate(0, 0, -1), Key: key.Key.ID, Network: "mainnet", Method: "eth_call", Counts: usage.Counts{Requests: 1000, Errors: 10, Credits: 20000, Time: 2 * time.Second}},
		{Time: today, Key: key.Key.ID, Network: "starknet", Method: "starknet_blockNumber", Counts: usage.Counts{Requests: 500, Credits: 500, Time: time.Second}},
		{Time: today, Key: account.KeyID(a.ID), Network: "mainnet", Method: "", Counts: usage.Counts{Requests: 3, Errors: 1, Credits: 3, Time: 3 * time.Millisecond}},
		{Time: today, Key: account.KeyID{7}, Network: "mainnet", Method: "of_others", Counts: usage.Counts{Requests: 9}},
	}
	b.get("/?time=7").says(t, 200, "11 of 1,503 calls failed", "Calls per day", "p99", "A call costs")
	b.get("/usage").says(t, 200, "1,503 calls, 0.7 % failed; 20,503 credits;", "=evil", "Console", "eth_call", "starknet_<wbr>blockNumber", "no such method")
	only := b.get("/usage?network=mainnet&time=7&key=" + key.Key.ID.String())
	only.says(t, 200, "1,000 calls, 1.0 % failed; 20,000 credits", `value="mainnet" selected`, `aria-current="page">7 days</a>`, `/usage?key=`+key.Key.ID.String()+`&amp;method=eth_call`)
	if !strings.Contains(only.body, `/usage.csv?key=`) {
		t.Error("the CSV is not of what is shown")
	}
	b.get("/usage?time=100000&method=nothing").says(t, 200, "No calls in the last 30 days.")

	// Calls of unknown methods are one choice among the methods, not the one of all methods.
	all := b.get("/usage")
	if strings.Count(all.body, `<option value="" selected>`) != 3 || !strings.Contains(all.body, `<option value="" selected>all methods</option>`) {
		t.Errorf("the method filter does not show all methods:\n%s", all.body)
	}
	b.get("/usage?method=-").says(t, 200, "3 calls, 33.3 % failed; 3 credits", `<option value="-" selected>no such method</option>`)
	all.says(t, 200, ">p95</th>")

	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	operator.get("/service?time=7").says(t, 200, "1,512", "of_<wbr>others", "eth_<wbr>call")

	file := b.get("/usage.csv?network=mainnet")
	if kind, name := file.header.Get("Content-Type"), file.header.Get("Content-Disposition"); !strings.HasPrefix(kind, "text/csv") || !strings.HasPrefix(name, `attachment; filename="ashlar-usage-`) {
		t.Errorf("%s, %s", kind, name)
	}
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v in %s", err, file.body)
	}
	if got := strings.Join(rows[1][2:], ","); got != "'=evil,mainnet,eth_call,1000,10,0,20000,0,2000,3000.000" {
		t.Errorf("a row is %s", got)
	}
}

// If there are many networks or methods, the largest have a series each and the others
// share one.
func TestStackPutsLittleTogether(t *testing.T) {
	now := time.Date(2026, 5, 8, 13, 0, 0, 0, time.UTC)
	line := newTimeline(readSpan(nil, "7"), now)
	first := time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	var all []usage.Line
	for i := range 8 {
		all = append(all, usage.Line{Time: first.AddDate(0, 0, i%2), Network: string(rune('a' + i)), Counts: usage.Counts{Requests: uint64(10 * (i + 1))}})
	}
	all = append(all, usage.Line{Time: first.AddDate(0, 0, -1), Network: "a", Counts: usage.Counts{Requests: 1}}) // before the first day
	c := line.byNetwork(all).Chart
	var names []string
	for _, s := range c.Series {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "h g f e d others" || c.Labels[0] != "2 May" || c.Labels[6] != "8 May" {
		t.Errorf("series %s, from %s to %s", got, c.Labels[0], c.Labels[6])
	}
	if others := c.Series[maxSeries].Values; others[0] != 10+30 || others[1] != 20 {
		t.Errorf("others %+v", others)
	}
}

// Each span has its number of steps, the last of which is the current one.
func TestSpans(t *testing.T) {
	now := time.Date(2026, 5, 8, 13, 45, 30, 0, time.UTC)
	for value, want := range map[string]string{
		"hour": "60 minutes from 12:46 to 13:45", "day": "24 hours from 14:00 to 13:00",
		"7": "7 days from 2 May to 8 May", "30": "30 days from 9 Apr to 8 May", "90": "90 days from 8 Feb to 8 May",
		"nonsense": "24 hours from 14:00 to 13:00",
	} {
		line := newTimeline(readSpan(url.Values{"time": {value}}, spanDay), now)
		if got := fmt.Sprintf("%d %ss from %s to %s", line.steps, line.Each, line.labels[0], line.labels[line.steps-1]); got != want {
			t.Errorf("%s: %s, expected %s", value, got, want)
		}
		if step, ok := line.at(now); !ok || step != line.steps-1 {
			t.Errorf("%s: now is in step %d, %v", value, step, ok)
		}
	}
}
