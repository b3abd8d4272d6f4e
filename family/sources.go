package family

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"ashlar/endpoint"
)

// Sources are the URLs of the nodes that a network follows, written as one or as a list.
type Sources []string

// UnmarshalYAML implements yaml.InterfaceUnmarshaler.
func (s *Sources) UnmarshalYAML(decode func(any) error) error {
	var one string
	if decode(&one) == nil {
		*s = Sources{one}
		return nil
	}
	var list []string
	if err := decode(&list); err != nil {
		return errors.New("expected the URL of a node, or a list of them")
	}
	*s = list
	return nil
}

// Check returns what is wrong with the URLs, which must have one of the schemes. An
// error names a URL by its position, since it may hold a key.
func (s Sources) Check(schemes ...string) error {
	var before []string
	for i, address := range s {
		u, err := endpoint.Parse(address, schemes...)
		if err == nil {
			err = checkPort(u)
		}
		if err != nil {
			return fmt.Errorf("number %d of %d: %w", i+1, len(s), err)
		}
		canonical := endpoint.Canonical(u)
		if first := slices.Index(before, canonical); first >= 0 {
			return fmt.Errorf("number %d of %d: the URL of number %d again (want each node once, since a quorum counts nodes)", i+1, len(s), first+1)
		}
		before = append(before, canonical)
	}
	return nil
}

// checkPort checks the port of a node's URL, which may have none.
func checkPort(u *url.URL) error {
	if u.Port() == "" {
		return nil
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return fmt.Errorf("the URL of a node has the port %s: expected one from 1 to 65535", u.Port())
	}
	return nil
}
