package dashboard

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/site"
)

func TestUsage(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	key, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "=evil"})
	if err != nil {
		t.Fatal(err)
	}
	today := site.Day(time.Now())
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

	// What is selected is shown as selected, although it was not used.
	unused, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "unused"})
	if err != nil {
		t.Fatal(err)
	}
	b.get("/usage?key="+unused.Key.ID.String()+"&network=gone&method=nothing").says(t, 200, "No calls in the last 30 days.",
		`<option value="`+unused.Key.ID.String()+`" selected>unused</option>`, `<option value="gone" selected>gone</option>`, `<option value="nothing" selected>nothing</option>`)

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
