package dashboard

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ashlar/account"
)

// The fields of a key's rules.
const (
	fieldNetworks  = "networks"
	fieldMethods   = "methods"
	fieldContracts = "contracts"
	fieldOrigins   = "origins"
	fieldAddresses = "addresses"
	fieldPerSecond = "per-second"
	fieldPerDay    = "per-day"
)

// rulesFields returns the fields of a key's rules; present is its current rules. A network
// that the key is restricted to is offered even if it is not served now, so that saving the
// form does not drop the restriction.
func rulesFields(networks []Network, present *account.Rules) []*field {
	served := &field{Name: fieldNetworks, Label: "Networks", Kind: kindChecks, Optional: true, Unmarked: true, Hint: "Leave empty to allow all networks, including future ones."}
	for _, n := range networks {
		served.Choices = append(served.Choices, choice{n.Name, n.Name})
	}
	if present != nil {
		for _, name := range present.Networks {
			if !served.offers(name) {
				served.Choices = append(served.Choices, choice{name, name + " (not served now)"})
			}
		}
	}
	text := func(name, label, hint string) *field {
		return &field{Name: name, Label: label, Kind: kindText, Rows: 3, Optional: true, Unmarked: true, Hint: hint}
	}
	return []*field{
		served,
		text(fieldMethods, "Methods", "One per line; eth_* allows all names that start with eth_."),
		text(fieldContracts, "Contracts", "One address per line. Only these contracts can be called and read."),
		text(fieldOrigins, "Web pages", "Allowed origins, such as https://app.example.org. Clients other than browsers are not affected."),
		text(fieldAddresses, "Client addresses", "One per line: 192.0.2.7, or a network such as 192.0.2.0/24."),
		{Name: fieldPerSecond, Label: "Credits a second", Kind: "number", Optional: true, Unmarked: true, Hint: "Two seconds’ worth can accumulate. The service’s own limit applies too."},
		{Name: fieldPerDay, Label: "Credits a day", Kind: "number", Optional: true, Unmarked: true, Hint: "Days start at 00:00 UTC."},
	}
}

// fillRules fills the form with a key's rules.
func fillRules(f *form, rules *account.Rules) {
	if rules == nil {
		return
	}
	f.Field(fieldNetworks).Values = rules.Networks
	f.fill(fieldMethods, strings.Join(rules.Methods, "\n"))
	f.fill(fieldOrigins, strings.Join(rules.Origins, "\n"))
	var contracts, addresses []string
	for _, c := range rules.Contracts {
		text, _ := c.MarshalText() // cannot fail
		contracts = append(contracts, string(text))
	}
	for _, a := range rules.Addresses {
		addresses = append(addresses, shortPrefix(a))
	}
	f.fill(fieldContracts, strings.Join(contracts, "\n"))
	f.fill(fieldAddresses, strings.Join(addresses, "\n"))
	if rules.PerSecond > 0 {
		f.fill(fieldPerSecond, strconv.FormatUint(uint64(rules.PerSecond), 10))
	}
	if rules.PerDay > 0 {
		f.fill(fieldPerDay, strconv.FormatUint(rules.PerDay, 10))
	}
}

// shortPrefix writes a prefix of one address as that address.
func shortPrefix(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// readRules reads a key's rules from a form and records problems in its fields.
func readRules(f *form) (rules account.Rules) {
	rules.Networks, rules.Methods, rules.Origins = f.lines(fieldNetworks), f.lines(fieldMethods), f.lines(fieldOrigins)
	for _, line := range f.lines(fieldContracts) {
		var c account.Contract
		if err := c.UnmarshalText([]byte(line)); err != nil {
			f.fail(fieldContracts, sentence(err.Error()))
			continue
		}
		rules.Contracts = append(rules.Contracts, c)
	}
	for _, line := range f.lines(fieldAddresses) {
		p, err := account.ParseAddresses(line)
		if err != nil {
			f.fail(fieldAddresses, sentence(err.Error()))
			continue
		}
		rules.Addresses = append(rules.Addresses, p)
	}
	for name, part := range map[string]account.Rules{
		fieldMethods: {Methods: rules.Methods}, fieldOrigins: {Origins: rules.Origins},
		fieldContracts: {Contracts: rules.Contracts}, fieldAddresses: {Addresses: rules.Addresses},
	} {
		if err := part.Check(); err != nil {
			f.fail(name, sentence(err.Error()))
		}
	}
	rules.PerSecond = uint32(readNumber(f, fieldPerSecond, 32))
	rules.PerDay = readNumber(f, fieldPerDay, 53)
	return rules
}

// readNumber reads an optional number.
func readNumber(f *form, name string, bits int) uint64 {
	text := f.value(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil || n == 0 {
		f.fail(name, fmt.Sprintf("Expected a whole number from 1 to %s, or leave this empty.", count(uint64(1)<<bits-1)))
	}
	return n
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
