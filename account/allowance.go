package account

// Allowance is what a key may spend: all limits that apply to it, with their use.
type Allowance struct {
	PerSecond []Bound
	PerDay    []Bound // days start at 00:00 UTC
}

// Bound is a limit of credits.
type Bound struct {
	Source  LimitSource
	Credits float64
	Used    float64 // in the last second, or today. 0 for AddressDefault
}

// LimitSource says where a limit was set, and whose credits it counts.
type LimitSource int

// The sources of limits.
const (
	KeyRule        LimitSource = iota // the rules of the key
	KeyDefault                        // the configuration, for each key
	AccountLimit                      // an operator, for all keys of the account together
	AccountDefault                    // the configuration, for all keys of an account together
	AddressDefault                    // the configuration, for all requests from one client address
)

// Rate returns the bound that limits credits per second, or false if none does.
func (a Allowance) Rate() (least Bound, ok bool) {
	for _, b := range a.PerSecond {
		if !ok || b.Credits < least.Credits {
			least, ok = b, true
		}
	}
	return least, ok
}

// Quota returns the bound that leaves the fewest credits today, or false if none does.
func (a Allowance) Quota() (least Bound, ok bool) {
	for _, b := range a.PerDay {
		if !ok || b.Credits-b.Used < least.Credits-least.Used {
			least, ok = b, true
		}
	}
	return least, ok
}
