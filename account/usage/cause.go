package usage

import "fmt"

// Cause says why a request was refused. Its numbers are stored.
type Cause uint8

// The causes of refusals.
const (
	_        Cause = iota
	Rate           // credits per second of the key, its account or the client's address
	Quota          // credits per day of the key or its account
	Origin         // the web page's origin is not allowed, by the key's rules or by the server
	Address        // the key's rules do not list the client's address
	Network        // the key's rules do not list the network
	Password       // the key's password is missing or wrong
	Method         // the key's rules do not list the method
	Contract       // the key's rules do not list the contract
	Busy           // the server has no slot, memory or store for the request
	Size           // the request is too long
	Sockets        // the account has too many WebSockets
)

// causeNames are the names of causes in JSON.
var causeNames = [...]string{"", "rate", "quota", "origin", "address", "network", "password", "method", "contract", "busy", "size", "sockets"}

// Causes lists all causes.
func Causes() (all []Cause) {
	for c := Rate; int(c) < len(causeNames); c++ {
		all = append(all, c)
	}
	return all
}

// String returns the cause in one word.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause %d", uint8(c)) // of a later version
}

// MarshalText implements encoding.TextMarshaler.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Cause) UnmarshalText(text []byte) error {
	for i, name := range causeNames {
		if name == string(text) {
			*c = Cause(i)
			return nil
		}
	}
	if _, err := fmt.Sscanf(string(text), "cause %d", (*uint8)(c)); err != nil {
		return fmt.Errorf("unknown cause %q (want one such as %s)", text, Rate)
	}
	return nil
}
