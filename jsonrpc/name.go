package jsonrpc

import (
	"strings"
	"unicode/utf8"
)

// Name is the name of a member that a client sent.
type Name []byte

// Is reports whether n is name, in any case, as encoding/json matches the names of members
// and as geth therefore does. name must be ASCII.
//
//	switch name := members.Name(); {
//	case name.Is("fromBlock"): ...
//	}
func (n Name) Is(name string) bool {
	return string(n) == name || len(n) >= len(name) && n.folds(name)
}

// folds reports whether n is name in another case. Two letters outside ASCII fold into
// letters of names: ſ into s, and the Kelvin sign into k.
func (n Name) folds(name string) bool {
	for i := range len(name) {
		switch a, b := n[i], name[i]; {
		case a == b:
		case a >= utf8.RuneSelf:
			return strings.EqualFold(string(n[i:]), name[i:])
		case a^b != 'a'^'A' || a|0x20 < 'a' || a|0x20 > 'z':
			return false
		}
	}
	return len(n) == len(name)
}
