package dashboard

import (
	"encoding/csv"
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
	b.get("/").says(t, 200, "1,503", "503 today", "0.7 %", "2 ms", "Calls a day, by network", "mainnet", "starknet")
	b.get("/usage").says(t, 200, "1,503 calls, 20,503 credits in 30 days", "=evil", "Console", "eth_call", "starknet_blockNumber", "no such method")
	only := b.get("/usage?network=mainnet&days=7&key=" + key.Key.ID.String())
	only.says(t, 200, "1,000 calls, 20,000 credits in 7 days", `value="mainnet" selected`, `value="7" selected`)
	if !strings.Contains(only.body, `/usage.csv?days=7&amp;key=`) {
		t.Error("the CSV is not of what is shown")
	}
	b.get("/usage?days=100000&method=nothing").says(t, 200, "0 calls", "in 30 days", "No calls in this period.")

	// Calls of unknown methods are one choice among the methods, not the one of all methods.
	all := b.get("/usage")
	if strings.Count(all.body, `<option value="" selected>`) != 3 || !strings.Contains(all.body, `<option value="" selected>all methods</option>`) {
		t.Errorf("the method filter does not show all methods:\n%s", all.body)
	}
	b.get("/usage?method=-").says(t, 200, "3 calls, 3 credits in 30 days", `<option value="-" selected>no such method</option>`)
	b.get("/").says(t, 200, "mean; p95 ", "on 2 networks")
	all.says(t, 200, ">p95</th>")
	s.single = true
	b.get("/").says(t, 200, "on 1 network<")
	s.single = false

	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	operator.get("/service").says(t, 200, "1,512", "of_others", "eth_call")

	file := b.get("/usage.csv?network=mainnet")
	if kind, name := file.header.Get("Content-Type"), file.header.Get("Content-Disposition"); !strings.HasPrefix(kind, "text/csv") || !strings.HasPrefix(name, `attachment; filename="ashlar-usage-`) {
		t.Errorf("%s, %s", kind, name)
	}
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v in %s", err, file.body)
	}
	if got := strings.Join(rows[1][2:], ","); got != "'=evil,mainnet,eth_call,1000,10,20000,2000,3000.000" {
		t.Errorf("a row is %s", got)
	}
}

// If there are many networks or methods, the largest have a series each and the others
// share one.
func TestSpreadPutsLittleTogether(t *testing.T) {
	first := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	var all []usage.Line
	for i := range 8 {
		all = append(all, usage.Line{Time: first.AddDate(0, 0, i%2), Network: string(rune('a' + i)), Counts: usage.Counts{Requests: uint64(10 * (i + 1))}})
	}
	all = append(all, usage.Line{Time: first.AddDate(0, 0, 9), Network: "a", Counts: usage.Counts{Requests: 1}}) // after the last day
	b := spread(all, first, 2, func(u usage.Line) string { return u.Network })
	if got := strings.Join(b.names, " "); got != "h g f e d others" {
		t.Errorf("series %s", got)
	}
	if others := b.sums[maxSeries]; others[0].Requests != 10+30 || others[1].Requests != 20 {
		t.Errorf("others %+v", others)
	}
}
