// Package activity serves the pages that show what clients have called: the overview, usage,
// failed requests, the whole service and the public status.
package activity

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/chart"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForAccount("GET /keys/{key}/failures", account.TeamViewer, showFailures),
		site.ForAccount("POST /keys/{key}/failures", account.TeamMember, keepParams),
		site.ForAccount("GET /live", account.TeamViewer, showLive),
		site.ForAccount("GET /usage", account.TeamViewer, showUsage),
		site.ForAccount("GET /usage.csv", account.TeamViewer, download),
		site.ForTeam("GET /", account.TeamViewer, Overview),
		site.ForOperators("GET /service", showService),
		site.ForAll("GET /status", new(statusCache).serve),
	}
}

// usagePage is the data of the template usage.
type usagePage struct {
	Sum      tally
	Span     span
	Tabs     []tab
	CSV      string // its URL
	Form     *site.Form
	Pictures []picture // over the whole width
	Pairs    []picture // beside each other
	Failing  failing
	Tables   []usageTable
}

type usageTable struct {
	Title, Of string
	Rows      []*tally
}

// period is a query for usage. It never selects the account: the path does.
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

func showUsage(v *site.Visit) error {
	u, err := used(v)
	if err != nil {
		return err
	}
	p := usagePage{Form: u.form(), Span: u.span, Tabs: tabs(v, u.span), CSV: v.Path("/usage.csv") + "?" + v.R.URL.Query().Encode()}
	for _, one := range u.used {
		p.Sum.Add(one.Counts)
	}
	p.Pictures = []picture{u.time.outcomes(u.used), u.time.latency(u.used)}
	p.Pairs = []picture{
		u.time.one("credits", "Credits per "+u.Each, "credits", chart.Count, u.used, func(t *tally) uint64 { return t.Counts.Credits }),
		u.time.one("bytes", "Results per "+u.Each, "bytes", chart.Bytes, u.used, func(t *tally) uint64 { return t.Bytes }),
	}
	p.Failing = newFailing(v, u.time, u.used, u.pageOf(onlyKey(u.used)))
	p.Tables = u.tables(v)
	return v.Show(200, "usage", "Usage", &p) // the template calls methods of pointers
}

// tables returns the usage by key, method and network. Their rows link to the details.
func (u *usedBy) tables(v *site.Visit) []usageTable {
	query := v.R.URL.Query()
	only := func(name, value string) string {
		selected := maps.Clone(query)
		selected.Set(name, value)
		return v.Path("/usage") + "?" + selected.Encode()
	}
	byKey := tallies(u.used, func(one usage.Line) string { return one.Key.String() })
	for _, t := range byKey {
		id := t.Name
		t.Name = u.name(t.Name)
		if u.pageOf(id) != "" {
			t.Path = v.Path("/keys/" + id)
			t.Failed = t.Path + "/failures"
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
	return []usageTable{{"By key", "Key", byKey}, {"By method", "Method", methods}, {"By network", "Network", networks}}
}

// pageOf returns the ID of a key that has a page, or nothing.
func (u *usedBy) pageOf(id string) string {
	if u.keys[id] {
		return id
	}
	return ""
}

// used reads the usage that the query asks for.
func used(v *site.Visit) (*usedBy, error) {
	query := v.R.URL.Query()
	u := &usedBy{period: readPeriod(query), names: map[account.KeyID]string{account.KeyID(v.Account.ID): "Console"}, keys: make(map[string]bool)}
	now := time.Now()
	u.time = newTimeline(u.span, now)
	own, err := keys.Own(v).List(v.R.Context())
	if err != nil {
		return nil, err
	}
	for _, k := range own {
		u.names[k.ID], u.keys[k.ID.String()] = keys.Name(&k), true
	}
	q := usage.Query{Keys: keys.IDs(v.Account.ID, own, u.time.from), From: u.time.from, To: now, By: u.by | usage.ByNetwork | usage.ByMethod | usage.ByKey}
	if u.all, err = v.Config.Usage.Read(v.R.Context(), q); err != nil {
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

// form offers the keys, networks and methods with usage in the period, and those that are selected.
func (u *usedBy) form() *site.Form {
	key := &site.Field{Name: "key", Label: "Key", Kind: site.KindSelect, Value: u.key, Choices: []site.Choice{{Value: "", Label: "all keys"}}}
	network := &site.Field{Name: "network", Label: "Network", Kind: site.KindSelect, Value: u.network, Choices: []site.Choice{{Value: "", Label: "all networks"}}}
	method := &site.Field{Name: "method", Label: "Method", Kind: site.KindSelect, Value: u.method, Choices: []site.Choice{{Value: "", Label: "all methods"}}}
	same := func(value string) string { return value }
	for _, of := range []struct {
		field *site.Field
		value func(usage.Line) string
		label func(value string) string
	}{
		{key, func(one usage.Line) string { return one.Key.String() }, u.name},
		{network, func(one usage.Line) string { return one.Network }, same},
		{method, func(one usage.Line) string { return cmp.Or(one.Method, unknownMethod) }, func(value string) string {
			if value == unknownMethod {
				return noMethod
			}
			return value
		}},
	} {
		there := make(map[string]bool)
		for _, one := range u.all {
			there[of.value(one)] = true
		}
		if of.field.Value != "" { // else the form would say that all are shown
			there[of.field.Value] = true
		}
		var choices []site.Choice
		for value := range there {
			choices = append(choices, site.Choice{Value: value, Label: of.label(value)})
		}
		slices.SortFunc(choices, func(a, b site.Choice) int {
			return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.Value, b.Value))
		})
		of.field.Choices = append(of.field.Choices, choices...)
	}
	return site.NewForm(key, network, method)
}
