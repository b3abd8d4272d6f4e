package keys

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// The fields of a key's rules. An [account.KeyConflict] names them.
const (
	FieldNetworks  = string(account.FieldNetworks)
	FieldMethods   = string(account.FieldMethods)
	FieldContracts = string(account.FieldContracts)
	FieldOrigins   = string(account.FieldOrigins)
	FieldAddresses = string(account.FieldAddresses)
	FieldPerSecond = string(account.FieldPerSecond)
	FieldPerDay    = string(account.FieldPerDay)
)

// rulesForm is the data of the template rules.
type rulesForm struct {
	Form  *site.Form
	Costs string // what a call costs, in words; empty if nothing is served
}

func newRulesForm(f *site.Form, networks []site.Network) rulesForm {
	return rulesForm{f, site.CostRange(networks)}
}

// rulesFields returns the fields of a key's rules; known is its current rules, and earlier ones that the form may have
// shown. A network that the key is restricted to is offered even if it is not served now, so that saving the form does
// not drop the restriction.
func rulesFields(networks []site.Network, known ...*account.Rules) []*site.Field {
	served := &site.Field{Name: FieldNetworks, Label: "Networks", Kind: site.KindChecks, Optional: true, Unmarked: true, Hint: "Leave empty to allow all networks, including future ones."}
	for _, n := range networks {
		served.Choices = append(served.Choices, site.Choice{Value: n.Name, Label: n.Name})
	}
	for _, rules := range known {
		if rules == nil {
			continue
		}
		for _, name := range rules.Networks {
			if !served.Offers(name) {
				served.Choices = append(served.Choices, site.Choice{Value: name, Label: name + " (not served now)"})
			}
		}
	}
	text := func(name, label, hint string) *site.Field {
		return &site.Field{Name: name, Label: label, Kind: site.KindText, Rows: 3, Optional: true, Unmarked: true, Hint: hint}
	}
	return []*site.Field{
		served,
		text(FieldMethods, "Methods", "One per line; eth_* allows all names that start with eth_."),
		text(FieldContracts, "Contracts", "One address per line. Only these contracts can be called and read."),
		text(FieldOrigins, "Web pages", "Allowed origins, one per line, such as https://app.example.org. Clients other than browsers are not affected."),
		text(FieldAddresses, "Client addresses", "One per line: 192.0.2.7, or a network such as 192.0.2.0/24."),
		{Name: FieldPerSecond, Label: "Credits a second", Kind: "number", Optional: true, Unmarked: true, Hint: "Two seconds’ worth can accumulate. The service’s own limit applies too."},
		{Name: FieldPerDay, Label: "Credits a day", Kind: "number", Optional: true, Unmarked: true, Hint: "Days start at 00:00 UTC."},
	}
}

// fillRules fills the form with a key's rules.
func fillRules(f *site.Form, rules *account.Rules) {
	if rules == nil {
		return
	}
	f.Field(FieldNetworks).Values = rules.Networks
	f.Fill(FieldMethods, strings.Join(rules.Methods, "\n"))
	f.Fill(FieldOrigins, strings.Join(rules.Origins, "\n"))
	var contracts, addresses []string
	for _, c := range rules.Contracts {
		text, _ := c.MarshalText() // cannot fail
		contracts = append(contracts, string(text))
	}
	for _, a := range rules.Addresses {
		addresses = append(addresses, shortPrefix(a))
	}
	f.Fill(FieldContracts, strings.Join(contracts, "\n"))
	f.Fill(FieldAddresses, strings.Join(addresses, "\n"))
	if rules.PerSecond > 0 {
		f.Fill(FieldPerSecond, strconv.FormatUint(uint64(rules.PerSecond), 10))
	}
	if rules.PerDay > 0 {
		f.Fill(FieldPerDay, strconv.FormatUint(rules.PerDay, 10))
	}
}

// shortPrefix writes a prefix of one address as that address.
func shortPrefix(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// readRules reads a key's rules from a form and records problems in its fields. It does not check entries that
// present, the key's current rules, has already.
func readRules(f *site.Form, present *account.Rules) (rules account.Rules) {
	rules.Networks, rules.Methods, rules.Origins = f.Lines(FieldNetworks), f.Lines(FieldMethods), f.Lines(FieldOrigins)
	for _, line := range f.Lines(FieldContracts) {
		var c account.Contract
		if err := c.UnmarshalText([]byte(line)); err != nil {
			f.Fail(FieldContracts, site.Sentence(err.Error()))
			continue
		}
		rules.Contracts = append(rules.Contracts, c)
	}
	for _, line := range f.Lines(FieldAddresses) {
		p, err := account.ParseAddresses(line)
		if err != nil {
			f.Fail(FieldAddresses, site.Sentence(err.Error()))
			continue
		}
		rules.Addresses = append(rules.Addresses, p)
	}
	for name, part := range map[string]account.Rules{
		FieldMethods: {Methods: rules.Methods}, FieldOrigins: {Origins: rules.Origins},
		FieldContracts: {Contracts: rules.Contracts}, FieldAddresses: {Addresses: rules.Addresses},
	} {
		if err := part.CheckChange(present); err != nil {
			f.Fail(name, site.Sentence(err.Error()))
		}
	}
	rules.PerSecond = uint32(site.ReadNumber(f, FieldPerSecond, 32))
	rules.PerDay = site.ReadNumber(f, FieldPerDay, 53)
	return rules
}

// rulesInWords summarizes a key's rules for lists, without its limits of credits. It is empty
// for a key that may be used for everything.
func rulesInWords(rules *account.Rules) string {
	if rules == nil {
		return ""
	}
	var parts []string
	for _, list := range []struct {
		n         int
		one, many string
	}{
		{len(rules.Methods), "method", "methods"}, {len(rules.Contracts), "contract", "contracts"},
		{len(rules.Origins), "web page", "web pages"}, {len(rules.Addresses), "address", "addresses"},
	} {
		switch {
		case list.n == 1:
			parts = append(parts, "1 "+list.one)
		case list.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", list.n, list.many))
		}
	}
	if len(rules.Networks) > 0 {
		parts = slices.Insert(parts, 0, strings.Join(rules.Networks, ", "))
	}
	return strings.Join(parts, "; ")
}
