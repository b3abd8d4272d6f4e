package app

import (
	"net"
	"strings"
	"testing"

	"ashlar/app/config"
)

// TestAddressTaken: an address that another process has ends the start with an error that names the entry to change.
func TestAddressTaken(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().String()
	for entry, set := range map[string]func(c *config.Config){
		"the entry listen, or --listen": func(c *config.Config) { c.Listen = taken },
		"the entry operator":            func(c *config.Config) { c.Operator = taken },
	} {
		c := config.Default()
		c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
		makeNetwork(t, c.Data)
		set(&c)
		s, err := Open(t.Context(), c, nil)
		if err == nil {
			t.Errorf("%s: started at an address that is taken: %v", entry, s.Close())
			continue
		}
		if !strings.Contains(err.Error(), taken) || !strings.Contains(err.Error(), "(want another address: "+entry+")") {
			t.Errorf("%s: the start ended with %v", entry, err)
		}
	}
}
