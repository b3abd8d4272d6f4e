// Package manual serves the documentation of methods, requests, errors and limits.
package manual

import (
	"fmt"
	"slices"
	"strings"

	"ashlar/dashboard/site"
	"ashlar/jsonrpc"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForAll("GET /docs", list),
		site.ForAll("GET /docs/methods/{method}", showMethod),
		site.ForAll("GET /docs/requests", showRequests),
		site.ForAll("GET /docs/errors", showErrors),
		site.ForAll("GET /docs/limits", showLimits),
	}
}

// docsPage is the data of the template docs: every method, or those that a search found.
type docsPage struct {
	Query   string
	Found   int
	Groups  []docsGroup
	Example docsExample
}

// docsGroup is the methods of the networks of one family.
type docsGroup struct {
	Family   string
	Title    string
	Networks []string
	Methods  []site.Method
}

// docsExample is a call of the first network.
type docsExample struct {
	Network, URL, Socket, Text string
}

// list lists the methods of all networks. It needs no account, like every page below it.
func list(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	p := docsPage{Query: strings.TrimSpace(v.R.URL.Query().Get("q"))}
	for _, g := range docsGroups(networks) {
		g.Methods = slices.DeleteFunc(g.Methods, func(m site.Method) bool { return !matches(&m, p.Query) })
		p.Found += len(g.Methods)
		if len(g.Methods) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	if len(networks) > 0 {
		n := &networks[0]
		url := site.Endpoint(v.R, n, site.KeyPlace)
		p.Example = docsExample{n.Name, url, site.SocketEndpoint(url), n.Snippets(url, "")[0].Text}
	}
	return v.Show(200, "docs", "Documentation", p)
}

// docsGroups collects the methods of the networks by family, each once.
func docsGroups(networks []site.Network) (groups []docsGroup) {
	for _, n := range networks {
		i := slices.IndexFunc(groups, func(g docsGroup) bool { return g.Family == n.Family })
		if i < 0 {
			i = len(groups)
			groups = append(groups, docsGroup{Family: n.Family, Title: familyTitle(n.Family)})
		}
		g := &groups[i]
		g.Networks = append(g.Networks, n.Name)
		for _, m := range n.Methods {
			if !slices.ContainsFunc(g.Methods, func(other site.Method) bool { return other.Name == m.Name }) {
				g.Methods = append(g.Methods, m)
			}
		}
	}
	for i := range groups {
		slices.SortFunc(groups[i].Methods, func(a, b site.Method) int { return strings.Compare(a.Name, b.Name) })
	}
	return groups
}

// familyTitle returns how people write the name of a family.
func familyTitle(family string) string {
	if len(family) <= 3 {
		return strings.ToUpper(family) + " networks"
	}
	return site.Capital(family) + " networks"
}

// matches reports whether a method's name or summary contains every word of a search.
func matches(m *site.Method, query string) bool {
	text := strings.ToLower(m.Name + " " + m.Summary)
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// docsMethodPage is the data of the template docs-method.
type docsMethodPage struct {
	Method   site.Method
	Networks []string // that have the method
	Network  string   // of the example
	Params   []site.TypeLine
	Result   []site.TypeLine
	Request  string // the example
	Command  string // that sends the example
	Socket   string // URL for a method that needs a WebSocket
	From     []*jsonrpc.Param
}

// showMethod describes one method.
func showMethod(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	p, name := docsMethodPage{}, v.R.PathValue("method")
	var chosen *site.Network
	for _, n := range networks {
		if n.Method(name) == nil {
			continue
		}
		p.Networks = append(p.Networks, n.Name)
		if chosen == nil || n.Name == v.R.URL.Query().Get("network") {
			chosen = &n
		}
	}
	if chosen == nil {
		return site.ErrNoPage
	}
	m := chosen.Method(name)
	p.Method, p.Network = *m, chosen.Name
	for i, param := range m.Params {
		p.Params = append(p.Params, site.TypeLines(param.Name, param.Summary, param.Required, param.Schema)...)
		if param.From != "" {
			p.From = append(p.From, &m.Params[i])
		}
	}
	p.Result = site.TypeLines(m.Result.Name, "", true, m.Result.Schema)
	p.Request = v.ExampleRequest(m)
	url := site.Endpoint(v.R, chosen, site.KeyPlace)
	p.Socket = site.SocketEndpoint(url)
	p.Command = site.CurlCommand(url, "", p.Request)
	return v.Show(200, "docs-method", m.Name, p)
}

// showRequests explains how to send calls.
func showRequests(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	var all struct {
		Networks []site.Use
		Batch    string // an example
	}
	all.Batch = batchExample(networks)
	for _, n := range networks {
		url := site.Endpoint(v.R, &n, site.KeyPlace)
		all.Networks = append(all.Networks, site.Use{Network: n.Name, URL: url, Socket: site.SocketEndpoint(url)})
	}
	return v.Show(200, "docs-requests", "Requests", all)
}

// batchExample returns a batch of two short calls that the first network answers.
func batchExample(networks []site.Network) string {
	names := []string{"rpc.discover", "rpc.discover"} // which every network has
	if len(networks) > 0 {
		for i, suffix := range []string{"_blockNumber", "_chainId"} {
			if at := slices.IndexFunc(networks[0].Methods, func(m site.Method) bool { return strings.HasSuffix(m.Name, suffix) }); at >= 0 {
				names[i] = networks[0].Methods[at].Name
			}
		}
	}
	const call = `  {"jsonrpc": "2.0", "id": %d, "method": %q, "params": []}`
	return fmt.Sprintf("[\n"+call+",\n"+call+"\n]", 1, names[0], 2, names[1])
}

// docsErrorsPage is the data of the template docs-errors.
type docsErrorsPage struct {
	Errors []jsonrpc.Explanation
	Own    []ownError // errors that the descriptions of single methods list
}

// ownError is an error of some methods.
type ownError struct {
	Code    int
	Message string
	Methods []string
}

// showErrors explains every error.
func showErrors(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	return v.Show(200, "docs-errors", "Errors", docsErrorsPage{jsonrpc.Explanations(), ownErrors(networks)})
}

// ownErrors collects the errors that methods describe, in the order of the methods.
func ownErrors(networks []site.Network) (all []ownError) {
	for _, g := range docsGroups(networks) {
		for _, m := range g.Methods {
			for _, e := range m.Errors {
				i := slices.IndexFunc(all, func(o ownError) bool { return o.Code == e.Code && o.Message == e.Message })
				if i < 0 {
					i = len(all)
					all = append(all, ownError{Code: e.Code, Message: e.Message})
				}
				if !slices.Contains(all[i].Methods, m.Name) {
					all[i].Methods = append(all[i].Methods, m.Name)
				}
			}
		}
	}
	return all
}

// docsLimitsPage is the data of the template docs-limits.
type docsLimitsPage struct {
	Groups []site.LimitGroup
	Prices []site.Price
}

// showLimits explains credits and lists the limits of clients.
func showLimits(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	var p docsLimitsPage
	for _, g := range v.Config.Limits() {
		if g.Public {
			for i := range g.Limits {
				g.Limits[i].Now = "" // what all clients use together is for operators
			}
			p.Groups = append(p.Groups, g)
		}
	}
	p.Prices = site.Prices(networks)
	return v.Show(200, "docs-limits", "Credits and limits", p)
}
