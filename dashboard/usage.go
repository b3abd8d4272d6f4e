package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/chart"
)

// usagePage is the data of the template usage.
type usagePage struct {
	Caption  string
	CSV      string // its URL
	Form     *form
	Pictures []picture
	Tables   []usageTable
}

type usageTable struct {
	Title, Of string
	Rows      []*tally
}

// period is a query for usage. It never selects the account: that is the visitor's.
type period struct {
	days                 int
	key, network, method string // empty for all
}

// usedBy is the usage of a period with the data needed to show it.
type usedBy struct {
	period
	first time.Time
	used  []usage.Line // selected by key, network and method
	all   []usage.Line // all usage of the period, for the choices
	names map[account.KeyID]string
}

func (v *visit) usage() error {
	u, err := v.used()
	if err != nil {
		return err
	}
	p := usagePage{Form: u.form(), CSV: "/usage.csv?" + v.r.URL.Query().Encode()}
	var sum tally
	for _, one := range u.used {
		sum.Add(one.Counts)
	}
	p.Caption = fmt.Sprintf("%s, %s in %d days. Days are those of UTC.", amount(sum.Requests, "call"), amount(sum.Credits, "credit"), u.days)
	p.Pictures = []picture{u.outcomes(), spread(u.used, u.first, u.days, func(usage.Line) string { return "mean" }).lines("time", "Mean latency")}
	p.Tables = []usageTable{
		{"By key", "Key", tallies(u.used, func(one usage.Line) string { return u.name(one.Key) })},
		{"By method", "Method", tallies(u.used, methodName)},
		{"By network", "Network", tallies(u.used, func(one usage.Line) string { return one.Network })},
	}
	return v.show(200, "usage", "Usage", p)
}

// outcomes charts successful and failed calls.
func (u *usedBy) outcomes() picture {
	answered, failed := make([]float64, u.days), make([]float64, u.days)
	b := spread(u.used, u.first, u.days, func(usage.Line) string { return "" })
	for i := range b.sums {
		for at := range u.days {
			t := &b.sums[i][at]
			answered[at], failed[at] = float64(t.Requests-min(t.Requests, t.Errors)), errorsOf(t)
		}
	}
	c := chart.Chart{ID: "calls", Title: "Calls a day", Labels: b.labels, Series: []chart.Series{
		{Name: "answered", Values: answered}, {Name: "failed", Kind: chart.Bad, Values: failed},
	}}
	return picture{c, c.Bars(), "Day"}
}

// used reads the usage that the query asks for.
func (v *visit) used() (*usedBy, error) {
	query := v.r.URL.Query()
	u := &usedBy{period: readPeriod(query), names: map[account.KeyID]string{account.KeyID(v.who.ID): "Console"}}
	now := time.Now()
	u.first = day(now).AddDate(0, 0, 1-u.days)
	keys, err := v.own().List(v.r.Context())
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		u.names[k.ID] = keyName(&k)
	}
	if u.all, err = v.usageOf(keys, u.first, now); err != nil {
		return nil, err
	}
	for _, one := range u.all {
		if u.holds(one) {
			u.used = append(u.used, one)
		}
	}
	return u, nil
}

// usageOf reads the usage of keys, and of sessions without a key.
func (v *visit) usageOf(keys []account.Key, from, to time.Time) ([]usage.Line, error) {
	q := usage.Query{From: from, To: to, By: usage.ByDay | usage.ByNetwork | usage.ByMethod | usage.ByKey}
	q.Keys = append(q.Keys, account.KeyID(v.who.ID))
	for _, k := range keys {
		q.Keys = append(q.Keys, k.ID)
	}
	return v.dashboard.config.Usage.Read(v.r.Context(), q)
}

// unknownMethod selects calls of unknown methods, which have no name; an empty value selects
// all.
const unknownMethod = "-"

// methodName returns the name to show for a call; calls of unknown methods have none.
func methodName(u usage.Line) string { return cmp.Or(u.Method, "no such method") }

func readPeriod(query url.Values) period {
	p := period{30, query.Get("key"), query.Get("network"), query.Get("method")}
	if n, err := strconv.Atoi(query.Get("days")); err == nil && slices.Contains(periods(), n) {
		p.days = n
	}
	return p
}

// periods lists the numbers of days to choose from.
func periods() []int { return []int{7, 30, 90} }

func (p *period) holds(u usage.Line) bool {
	return (p.key == "" || p.key == u.Key.String()) && (p.network == "" || p.network == u.Network) && (p.method == "" || p.method == cmp.Or(u.Method, unknownMethod))
}

func (u *usedBy) name(k account.KeyID) string { return cmp.Or(u.names[k], "Key "+k.String()) }

// form offers the keys, networks and methods with usage in the period.
func (u *usedBy) form() *form {
	span := &field{Name: "days", Label: "Time", Kind: kindSelect, Value: strconv.Itoa(u.days)}
	for _, n := range periods() {
		span.Choices = append(span.Choices, choice{strconv.Itoa(n), fmt.Sprintf("%d days", n)})
	}
	key := &field{Name: "key", Label: "Key", Kind: kindSelect, Value: u.key, Choices: []choice{{"", "all keys"}}}
	network := &field{Name: "network", Label: "Network", Kind: kindSelect, Value: u.network, Choices: []choice{{"", "all networks"}}}
	method := &field{Name: "method", Label: "Method", Kind: kindSelect, Value: u.method, Choices: []choice{{"", "all methods"}}}
	for _, of := range []struct {
		field *field
		value func(usage.Line) choice
	}{
		{key, func(one usage.Line) choice { return choice{one.Key.String(), u.name(one.Key)} }},
		{network, func(one usage.Line) choice { return choice{one.Network, one.Network} }},
		{method, func(one usage.Line) choice { return choice{cmp.Or(one.Method, unknownMethod), methodName(one)} }},
	} {
		var there []choice
		for _, one := range u.all {
			if c := of.value(one); !slices.Contains(there, c) {
				there = append(there, c)
			}
		}
		slices.SortFunc(there, func(a, b choice) int { return cmp.Compare(a.Label, b.Label) })
		of.field.Choices = append(of.field.Choices, there...)
		of.field.settle("")
	}
	return newForm(span, key, network, method)
}
