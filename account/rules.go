package account

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Rules are what a key may be used for. What is left out is not restricted, and nil
// restricts nothing.
type Rules struct {
	Networks  []string       `json:"networks,omitempty"`  // names
	Methods   []string       `json:"methods,omitempty"`   // names, or beginnings of names with * after them
	Origins   []string       `json:"origins,omitempty"`   // of web pages, as browsers send them
	Addresses []netip.Prefix `json:"addresses,omitempty"` // of clients
	Contracts []Contract     `json:"contracts,omitempty"` // that may be called and read
	PerSecond uint32         `json:"perSecond,omitempty"` // credits; 0: as the server has it for all keys, which an account's cannot lift
	PerDay    uint64         `json:"perDay,omitempty"`    // credits; the same
}

// Contract is the address of a contract.
type Contract [20]byte

// MarshalText implements encoding.TextMarshaler.
func (c Contract) MarshalText() ([]byte, error) { return []byte("0x" + hex.EncodeToString(c[:])), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Contract) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), "0x")
	if raw, err := hex.DecodeString(digits); ok && err == nil && len(raw) == len(c) {
		copy(c[:], raw)
		return nil
	}
	return fmt.Errorf("%q is no contract's address: expected 0x and 40 hexadecimal digits", text)
}

// ParseAddresses reads what somebody has typed for [Rules.Addresses]: one address, or a
// network of them.
func ParseAddresses(text string) (netip.Prefix, error) {
	if at, err := netip.ParseAddr(text); err == nil && at.Zone() == "" {
		return at.Unmap().Prefix(at.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is no address: expected one such as 192.0.2.7 or 192.0.2.0/24", text)
	}
	return p.Masked(), nil
}

// AllowsNetwork says whether the key may be used on a network.
func (r *Rules) AllowsNetwork(name string) bool {
	return r == nil || len(r.Networks) == 0 || slices.Contains(r.Networks, name)
}

// AllowsMethod says whether a method may be called.
func (r *Rules) AllowsMethod(name string) bool {
	return r == nil || len(r.Methods) == 0 || slices.ContainsFunc(r.Methods, func(rule string) bool {
		begin, open := strings.CutSuffix(rule, "*")
		return rule == name || open && strings.HasPrefix(name, begin)
	})
}

// AllowsOrigin says whether a page of an origin may use the key. What is no page, and
// so has no origin, does not know of the rule: a key that is seen in a page is seen by
// all, so this keeps other pages from using it, nobody else.
func (r *Rules) AllowsOrigin(origin string) bool {
	return r == nil || len(r.Origins) == 0 || origin == "" || slices.Contains(r.Origins, origin)
}

// AllowsAddress says whether a client at an address may use the key.
func (r *Rules) AllowsAddress(address netip.Addr) bool {
	address = address.Unmap()
	return r == nil || len(r.Addresses) == 0 || slices.ContainsFunc(r.Addresses, func(p netip.Prefix) bool { return p.Contains(address) })
}

// AllowsContract says whether a contract may be called and read.
func (r *Rules) AllowsContract(c Contract) bool {
	return r == nil || len(r.Contracts) == 0 || slices.Contains(r.Contracts, c)
}

// AllowsSameCalls says whether the calls that may be made are the same as under other
// rules.
func (r *Rules) AllowsSameCalls(other *Rules) bool {
	if r == other {
		return true
	}
	var none Rules
	if r == nil {
		r = &none
	}
	if other == nil {
		other = &none
	}
	return slices.Equal(r.Methods, other.Methods) && slices.Equal(r.Contracts, other.Contracts)
}

// equal says whether rules that are to be stored restrict a key as those do that it has.
func (r *Rules) equal(stored *Rules) bool {
	if r == nil || stored == nil {
		return r == stored
	}
	return r.AllowsSameCalls(stored) && slices.Equal(r.Networks, stored.Networks) && slices.Equal(r.Origins, stored.Origins) &&
		slices.Equal(r.Addresses, stored.Addresses) && r.PerSecond == stored.PerSecond && r.PerDay == stored.PerDay
}

// maxRules bounds each list of rules: they are looked through for every call.
const maxRules = 100

var ruledMethod = regexp.MustCompile(`^[A-Za-z0-9_]*\*?$`)

// check says what is wrong with rules before they are stored.
func (r *Rules) check() error {
	for name, n := range map[string]int{
		"networks": len(r.Networks), "methods": len(r.Methods), "origins": len(r.Origins),
		"addresses": len(r.Addresses), "contracts": len(r.Contracts),
	} {
		if n > maxRules {
			return fmt.Errorf("%d %s, expected at most %d", n, name, maxRules)
		}
	}
	var problems []error
	for _, method := range r.Methods {
		if !ruledMethod.MatchString(method) || method == "" {
			problems = append(problems, fmt.Errorf("%q is no method: expected a name such as eth_call, or a beginning such as eth_*", method))
		}
	}
	for _, origin := range r.Origins {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			problems = append(problems, fmt.Errorf("%q is no origin: expected one such as https://app.example.org", origin))
		}
	}
	for _, address := range r.Addresses {
		if !address.IsValid() {
			problems = append(problems, errors.New("an address is empty: expected one such as 192.0.2.0/24"))
		}
	}
	return errors.Join(problems...)
}

// Check says what is wrong with rules that are to be given to a key, as an [*Invalid].
func (r *Rules) Check() error { return r.checkTyped() }

// The lengths of rules that somebody types. They are no part of check, so that longer
// ones from before there were limits can still be read.
const (
	maxOrigin    = 300      // bytes
	maxMethod    = 100      // bytes
	maxRuleBytes = 16 << 10 // of all rules of a key, as they are stored
)

// checkTyped is check for rules that somebody has typed, with their lengths.
func (r *Rules) checkTyped() error {
	err := r.checkLengths()
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return &Invalid{FieldRules, err.Error()}
	}
	return nil
}

func (r *Rules) checkLengths() error {
	for _, method := range r.Methods {
		if len(method) > maxMethod {
			return fmt.Errorf("a method of %d bytes, expected at most %d", len(method), maxMethod)
		}
	}
	for _, origin := range r.Origins {
		if len(origin) > maxOrigin {
			return fmt.Errorf("an origin of %d bytes, expected at most %d", len(origin), maxOrigin)
		}
	}
	stored, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("rules that cannot be stored: %w", err)
	}
	if len(stored) > maxRuleBytes {
		return fmt.Errorf("%d bytes of rules, expected at most %d", len(stored), maxRuleBytes)
	}
	return nil
}

// stored is what to keep of rules: nil where nothing is restricted.
func (r Rules) stored() *Rules {
	if r.empty() {
		return nil
	}
	return &r
}

// empty says whether nothing is restricted.
func (r *Rules) empty() bool {
	return len(r.Networks) == 0 && len(r.Methods) == 0 && len(r.Origins) == 0 && len(r.Addresses) == 0 &&
		len(r.Contracts) == 0 && r.PerSecond == 0 && r.PerDay == 0
}
