package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two listeners with one address are refused with both entries: the server would not start.
func TestListenersHaveAddressesOfTheirOwn(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string // in the error; nil: none
	}{
		"apart":          {"listen: ':80'\noperator: 127.0.0.1:6060\nnetworks:\n  a: {engine: {listen: 127.0.0.1:8551}}\n  b: {}\n", nil},
		"other machines": {"listen: 192.0.2.1:80\noperator: 192.0.2.2:80\n", nil},
		"chosen":         {"listen: ':0'\noperator: ':0'\n", nil},
		"same":           {"listen: 127.0.0.1:8546\noperator: 127.0.0.1:8546\n", []string{"ashlar.yaml:2: operator: 127.0.0.1:8546 is also the address of listen, 127.0.0.1:8546"}},
		"the default":    {"operator: localhost:8545\n", []string{"ashlar.yaml:1: operator: localhost:8545 is also the address of listen, 127.0.0.1:8545"}},
		"all addresses":  {"listen: ':443'\noperator: 127.0.0.1:https\n", []string{"ashlar.yaml:2: operator: 127.0.0.1:https is also the address of listen, :443"}},
		"forms of one":   {"listen: '[::1]:80'\noperator: '[0:0:0:0:0:0:0:1]:80'\n", []string{"ashlar.yaml:2: operator: "}},
		"consensus clients": {"operator: 127.0.0.1:8551\nnetworks:\n  a: {engine: {listen: 127.0.0.1:8551}}\n  b:\n    engine: {listen: '[::]:8551'}\n", []string{
			"ashlar.yaml:3: networks.a.engine.listen: 127.0.0.1:8551 is also the address of operator",
			"ashlar.yaml:5: networks.b.engine.listen: [::]:8551 is also the address of operator",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ashlar.yaml")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Check(path, families())
			if (err == nil) != (test.want == nil) {
				t.Fatalf("%v, expected %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, expected %q", err, want)
				}
			}
			loaded, loadErr := Load(path, families())
			if loadErr != nil {
				t.Fatalf("loaded: %v; a flag may override listen", loadErr)
			}
			if err := loaded.CheckListeners(families()); (err == nil) != (test.want == nil) {
				t.Errorf("without lines: %v, expected %q", err, test.want)
			}
		})
	}
}
