package config

import (
	"reflect"
	"testing"
)

func TestHostsOfNetworks(t *testing.T) {
	c := Config{
		Hosts:    []string{"*.example.org"},
		Networks: map[string]Network{"one": {Hosts: []string{"first.test"}}, "two": {}},
	}
	for network, want := range map[string][]string{"one": {"first.test", "one.example.org"}, "two": {"two.example.org"}} {
		if got := c.HostsOf(network); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is at %q, expected %q", network, got, want)
		}
	}
}
