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

// Rules restrict what a key may be used for. An empty field restricts nothing, and neither
// do nil Rules.
type Rules struct {
	Networks  []string       `json:"networks,omitempty"`  // names
	Methods   []string       `json:"methods,omitempty"`   // names, or prefixes followed by *
	Origins   []string       `json:"origins,omitempty"`   // of web pages, as in the Origin header
	Addresses []netip.Prefix `json:"addresses,omitempty"` // of clients
	Contracts []Contract     `json:"contracts,omitempty"` // that may be called and read
	PerSecond uint32         `json:"perSecond,omitempty"` // credits; 0: the server's limit for keys. The account's limit applies as well
	PerDay    uint64         `json:"perDay,omitempty"`    // credits; likewise
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
	return fmt.Errorf("invalid contract address %q (want 0x and 40 hexadecimal digits)", text)
}

// ParseAddresses parses an entry of [Rules.Addresses]: one address, or a network in CIDR
// notation.
func ParseAddresses(text string) (netip.Prefix, error) {
	if at, err := netip.ParseAddr(text); err == nil && at.Zone() == "" {
		return at.Unmap().Prefix(at.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("invalid address %q (want one such as 192.0.2.7 or 192.0.2.0/24)", text)
	}
	return p.Masked(), nil
}

// AllowsNetwork reports whether the key may be used on a network.
func (r *Rules) AllowsNetwork(name string) bool {
	return r == nil || len(r.Networks) == 0 || slices.Contains(r.Networks, name)
}

// AllowsMethod reports whether a method may be called, unless its network restricts it.
func (r *Rules) AllowsMethod(name string) bool {
	return r == nil || len(r.Methods) == 0 || MatchesMethod(r.Methods, name)
}

// ListsMethod reports whether the rules list a method, so that it may be called even if its
// network restricts it.
func (r *Rules) ListsMethod(name string) bool { return r != nil && MatchesMethod(r.Methods, name) }

// MatchesMethod reports whether a list of names, and prefixes followed by *, has a method.
func MatchesMethod(list []string, name string) bool {
	return slices.ContainsFunc(list, func(rule string) bool {
		begin, open := strings.CutSuffix(rule, "*")
		return rule == name || open && strings.HasPrefix(name, begin)
	})
}

// CheckMethod returns an error if an entry of a list of methods is neither a name nor a
// prefix followed by *.
func CheckMethod(entry string) error {
	if !ruledMethod.MatchString(entry) || entry == "" {
		return fmt.Errorf("invalid method %q (want a name such as eth_call, or a prefix such as eth_*)", entry)
	}
	return nil
}

// AllowsOrigin reports whether a web page of an origin may use the key. Clients other than
// browsers send no Origin header and are not affected: a key embedded in a page is public,
// and the rule only keeps other pages from using it.
func (r *Rules) AllowsOrigin(origin string) bool {
	return r == nil || len(r.Origins) == 0 || origin == "" || slices.Contains(r.Origins, origin)
}

// AllowsAddress reports whether a client with an address may use the key.
func (r *Rules) AllowsAddress(address netip.Addr) bool {
	address = address.Unmap()
	return r == nil || len(r.Addresses) == 0 || slices.ContainsFunc(r.Addresses, func(p netip.Prefix) bool {
		if mapped := p.Bits() - mappedBits; p.Addr().Is4In6() && mapped >= 0 { // such as ::ffff:192.0.2.0/120
			p = netip.PrefixFrom(p.Addr().Unmap(), mapped)
		}
		return p.Contains(address)
	})
}

// mappedBits is how many bits precede an IPv4 address in IPv6.
const mappedBits = 96

// AllowsContract reports whether a contract may be called and read.
func (r *Rules) AllowsContract(c Contract) bool {
	return r == nil || len(r.Contracts) == 0 || slices.Contains(r.Contracts, c)
}

// AllowsSameCalls reports whether r and other have the same methods and contracts, so that
// they permit the same calls.
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

// equal reports whether r and the stored rules are the same.
func (r *Rules) equal(stored *Rules) bool {
	if r == nil || stored == nil {
		return r == stored
	}
	return r.AllowsSameCalls(stored) && slices.Equal(r.Networks, stored.Networks) && slices.Equal(r.Origins, stored.Origins) &&
		slices.Equal(r.Addresses, stored.Addresses) && r.PerSecond == stored.PerSecond && r.PerDay == stored.PerDay
}

// maxRules bounds the length of each list: every call searches them linearly.
const maxRules = 100

var ruledMethod = regexp.MustCompile(`^[A-Za-z0-9_]*\*?$`)

// Check validates rules as they may be stored, except for the lengths of their texts.
func (r *Rules) Check() error {
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
		if err := CheckMethod(method); err != nil {
			problems = append(problems, err)
		}
	}
	for _, origin := range r.Origins {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			problems = append(problems, fmt.Errorf("invalid origin %q (want one such as https://app.example.org)", origin))
		}
	}
	for _, address := range r.Addresses {
		if !address.IsValid() {
			problems = append(problems, errors.New("an address is empty: expected one such as 192.0.2.0/24"))
		}
	}
	return errors.Join(problems...)
}

// CheckChange validates rules that replace those of a key, which may be nil: it checks the entries that are
// added. The error is an [*Invalid].
func (r *Rules) CheckChange(before *Rules) error {
	if before == nil {
		return r.checkTyped()
	}
	added := *r
	added.Methods, added.Origins = without(r.Methods, before.Methods), without(r.Origins, before.Origins)
	if err := added.checkTyped(); err != nil {
		return err
	}
	err := r.Check() // how many there are
	if err == nil && r.size() > before.size() {
		err = r.checkSize()
	}
	if err != nil {
		return &Invalid{FieldRules, err.Error()}
	}
	return nil
}

// without returns the entries of a list that another one lacks.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(entry string) bool { return slices.Contains(other, entry) })
}

// Maximum lengths in new rules. Only checkTyped enforces them, so that longer rules written
// before the limits existed can still be read.
const (
	maxOrigin    = 300      // bytes
	maxMethod    = 100      // bytes
	maxRuleBytes = 16 << 10 // of all rules of a key, as they are stored
)

// checkTyped is check for new rules, including the lengths and whether browsers send the origins.
func (r *Rules) checkTyped() error {
	err := r.checkLengths()
	if err == nil {
		err = r.checkOrigins()
	}
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return &Invalid{FieldRules, err.Error()}
	}
	return nil
}

func (r *Rules) checkOrigins() error {
	var problems []error
	for _, origin := range r.Origins {
		problems = append(problems, CheckOrigin(origin))
	}
	return errors.Join(problems...)
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
	return r.checkSize()
}

func (r *Rules) checkSize() error {
	if size := r.size(); size > maxRuleBytes {
		return fmt.Errorf("%d bytes of rules, expected at most %d", size, maxRuleBytes)
	}
	return nil
}

// size returns how many bytes the rules take as they are stored.
func (r *Rules) size() int {
	stored, _ := json.Marshal(r) // cannot fail
	return len(stored)
}

// stored returns the rules to store: nil if they restrict nothing.
func (r Rules) stored() *Rules {
	if r.empty() {
		return nil
	}
	return &r
}

// empty reports whether r restricts nothing.
func (r *Rules) empty() bool {
	return len(r.Networks) == 0 && len(r.Methods) == 0 && len(r.Origins) == 0 && len(r.Addresses) == 0 &&
		len(r.Contracts) == 0 && r.PerSecond == 0 && r.PerDay == 0
}
