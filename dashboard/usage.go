package dashboard

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/chart"
)

// usagePage is the data of the template usage.
type usagePage struct {
	Sum      tally
	Span     span
	Tabs     []tab
	CSV      string // its URL
	Form     *form
	Pictures []picture // over the whole width
	Pairs    []picture // beside each other
	Failing  failing
	Tables   []usageTable
}

type usageTable struct {
	Title, Of string
	Rows      []*tally
}

// period is a query for usage. It never selects the account: that is the visitor's.
type period struct {
	span
	key, network, method string // empty for all
}

// usedBy is the usage of a period with the data needed to show it.
type usedBy struct {
	period
	time  *timeline
	used  []usage.Line // selected by key, network and method
	all   []usage.Line // all usage of the period, for the choices
	names map[account.KeyID]string
	keys  map[string]bool // IDs of keys that have a page
}

func (v *visit) usage() error {
	u, err := v.used()
	if err != nil {
		return err
	}
	p := usagePage{Form: u.form(), Span: u.span, Tabs: v.tabs(u.span), CSV: "/usage.csv?" + v.r.URL.Query().Encode()}
	for _, one := range u.used {
		p.Sum.Add(one.Counts)
	}
	p.Pictures = []picture{u.time.outcomes(u.used), u.time.latency(u.used)}
	p.Pairs = []picture{
		u.time.one("credits", "Credits per "+u.Each, "credits", chart.Count, u.used, func(t *tally) uint64 { return t.Counts.Credits }),
		u.time.one("bytes", "Results per "+u.Each, "bytes", chart.Bytes, u.used, func(t *tally) uint64 { return t.Bytes }),
	}
	p.Failing = newFailing(u.time, u.used, u.pageOf(onlyKey(u.used)))
	p.Tables = u.tables(v.r.URL.Query())
	return v.show(200, "usage", "Usage", &p) // the template calls methods of pointers
}

// tables returns the usage by key, method and network. Their rows link to the details.
func (u *usedBy) tables(query url.Values) []usageTable {
	only := func(name, value string) string {
		selected := maps.Clone(query)
		selected.Set(name, value)
		return "/usage?" + selected.Encode()
	}
	keys := tallies(u.used, func(one usage.Line) string { return one.Key.String() })
	for _, t := range keys {
		id := t.Name
		t.Name = u.name(t.Name)
		if u.pageOf(id) != "" {
			t.Path, t.Failed = "/keys/"+id, "/keys/"+id+"/failures"
		}
	}
	methods := tallies(u.used, func(one usage.Line) string { return one.Method })
	for _, t := range methods {
		t.Path = only("method", cmp.Or(t.Name, unknownMethod))
		t.Name = cmp.Or(t.Name, noMethod)
	}
	networks := tallies(u.used, func(one usage.Line) string { return one.Network })
	for _, t := range networks {
		t.Path = only("network", t.Name)
	}
	return []usageTable{{"By key", "Key", keys}, {"By method", "Method", methods}, {"By network", "Network", networks}}
}

// pageOf returns the ID of a key that has a page, or nothing.
func (u *usedBy) pageOf(id string) string {
	if u.keys[id] {
		return id
	}
	return ""
}

// used reads the usage that the query asks for.
func (v *visit) used() (*usedBy, error) {
	query := v.r.URL.Query()
	u := &usedBy{period: readPeriod(query), names: map[account.KeyID]string{account.KeyID(v.who.ID): "Console"}, keys: make(map[string]bool)}
	now := time.Now()
	u.time = newTimeline(u.span, now)
	keys, err := v.own().List(v.r.Context())
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		u.names[k.ID], u.keys[k.ID.String()] = keyName(&k), true
	}
	q := usage.Query{Keys: keyIDs(v.who.ID, keys), From: u.time.from, To: now, By: u.by | usage.ByNetwork | usage.ByMethod | usage.ByKey}
	if u.all, err = v.dashboard.config.Usage.Read(v.r.Context(), q); err != nil {
		return nil, err
	}
	for _, one := range u.all {
		if u.holds(one) {
			u.used = append(u.used, one)
		}
	}
	return u, nil
}

// unknownMethod selects calls of unknown methods, which have no name; an empty value selects
// all.
const unknownMethod = "-"

// methodName returns the name to show for a call; calls of unknown methods have none.
func methodName(u usage.Line) string { return cmp.Or(u.Method, noMethod) }

const noMethod = "no such method"

func readPeriod(query url.Values) period {
	return period{readSpan(query, spanMonth), query.Get("key"), query.Get("network"), query.Get("method")}
}

func (p *period) holds(u usage.Line) bool {
	return (p.key == "" || p.key == u.Key.String()) && (p.network == "" || p.network == u.Network) && (p.method == "" || p.method == cmp.Or(u.Method, unknownMethod))
}

// name returns the name of a key by its ID.
func (u *usedBy) name(id string) string {
	var k account.KeyID
	_ = k.UnmarshalText([]byte(id)) // else it has no name
	return cmp.Or(u.names[k], "Key "+id)
}

// form offers the keys, networks and methods with usage in the period.
func (u *usedBy) form() *form {
	key := &field{Name: "key", Label: "Key", Kind: kindSelect, Value: u.key, Choices: []choice{{"", "all keys"}}}
	network := &field{Name: "network", Label: "Network", Kind: kindSelect, Value: u.network, Choices: []choice{{"", "all networks"}}}
	method := &field{Name: "method", Label: "Method", Kind: kindSelect, Value: u.method, Choices: []choice{{"", "all methods"}}}
	for _, of := range []struct {
		field *field
		value func(usage.Line) choice
	}{
		{key, func(one usage.Line) choice { return choice{one.Key.String(), u.name(one.Key.String())} }},
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
	return newForm(key, network, method)
}
