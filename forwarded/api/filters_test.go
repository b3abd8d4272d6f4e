package api

import "testing"

// The bounds of a filter for logs of new blocks are numbers, earliest or latest, which sets none.
func TestBoundsOfNewLogs(t *testing.T) {
	n, c := newClients(t, "")
	c.join()
	filters := make(map[string]string) // by their bounds
	for bounds, want := range map[string]string{
		`{"fromBlock":"0x5","toBlock":"0x3"}`:           "invalid block range params",
		`{"fromBlock":"0x5","toBlock":"earliest"}`:      "invalid block range params",
		`{"toBlock":"0x3"}`:                             "invalid block range params",
		`{"fromBlock":"safe"}`:                          "invalid block range params",
		`{"fromBlock":"0x0","toBlock":"finalized"}`:     "invalid block range params",
		`{"toBlock":"pending"}`:                         "pending logs are not supported",
		`{"fromBlock":"earliest","toBlock":"earliest"}`: "",
		`{"fromBlock":"0x0","toBlock":"0xa"}`:           "",
		`{"fromBlock":"0xb"}`:                           "",
		`{"fromBlock":"earliest","toBlock":"latest"}`:   "",
	} {
		id, err := c.p.newLogFilter(t.Context(), []byte("["+bounds+"]"), nil)
		switch {
		case err == nil && want == "":
			filters[bounds] = string(id)
		case err == nil || err.Error() != want:
			t.Errorf("%s: %v, expected %q", bounds, err, want)
		}
	}
	n.present = chainOf("xy") // the blocks 10 and 11
	c.p.publish(t.Context())
	for bounds, want := range map[string]string{
		`{"fromBlock":"earliest","toBlock":"earliest"}`: "",
		`{"fromBlock":"0x0","toBlock":"0xa"}`:           "x",
		`{"fromBlock":"0xb"}`:                           "y",
		`{"fromBlock":"earliest","toBlock":"latest"}`:   "x y",
	} {
		if got := c.poll(filters[bounds]); got != want {
			t.Errorf("%s: got %q, expected %q", bounds, got, want)
		}
	}
	c.expect("x y", "x y")
}
