package network

import (
	"strings"
	"testing"

	"ashlar/family"
)

// Without a data directory, as in a cluster, the secret would be stored in the working directory.
func TestEngineSecret(t *testing.T) {
	for _, test := range []struct {
		jwt, data, want string
	}{{"own.jwt", "", "own.jwt"}, {"", "/data", "/data/engine/devnet.jwt"}, {"", "", ""}} {
		got, err := Engine{JWT: test.jwt}.secret(family.Service{Name: "devnet", Data: test.data})
		if got != test.want || (err == nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), "no data directory") {
			t.Errorf("jwt %q and data %q: %q, %v, expected %q", test.jwt, test.data, got, err, test.want)
		}
	}
}
