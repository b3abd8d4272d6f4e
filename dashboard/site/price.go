package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Price is the methods that cost the same.
type Price struct {
	Credits int
	Methods []string
}

// Prices returns what the methods of all networks cost, the cheapest first.
func Prices(networks []Network) []Price {
	byCredits := make(map[int][]string)
	for _, n := range networks {
		for _, m := range n.Methods {
			if !slices.Contains(byCredits[m.Credits], m.Name) {
				byCredits[m.Credits] = append(byCredits[m.Credits], m.Name)
			}
		}
	}
	var all []Price
	for n, methods := range byCredits {
		slices.SortFunc(methods, strings.Compare)
		all = append(all, Price{n, methods})
	}
	slices.SortFunc(all, func(a, b Price) int { return cmp.Compare(a.Credits, b.Credits) })
	return all
}

// CostRange says what calls cost, such as "from 1 to 50 credits".
func CostRange(networks []Network) string {
	all := Prices(networks)
	switch len(all) {
	case 0:
		return ""
	case 1:
		return Amount(uint64(all[0].Credits), "credit")
	}
	return fmt.Sprintf("from %s to %s", Count(all[0].Credits), Amount(uint64(all[len(all)-1].Credits), "credit"))
}
