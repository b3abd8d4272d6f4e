package command

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ashlar/app/store"
	"ashlar/evm/archive"
	forwarded "ashlar/forwarded/archive"
	"ashlar/kv"
)

// TestUnfinishedJoin serves, and lists, the other networks while the join of one is not complete.
func TestUnfinishedJoin(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{"joined", "other"} {
		demoOf(t, named(t, "evm"), data, name, 2)
	}
	opened, err := store.Dir(data).OpenNetwork("joined", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	batch := opened.NewBatch()
	archive.SetJoining(batch, &archive.Joining{Border: 2, Above: true})
	if err := errors.Join(opened.Write(t.Context(), batch), opened.Close()); err != nil {
		t.Fatal(err)
	}
	checkUnserved(t, data, "network joined is not served: open")
}

// TestForwardedWithoutUpstream serves, and lists, the other networks if the configuration does not name the nodes of
// one.
func TestForwardedWithoutUpstream(t *testing.T) {
	data := t.TempDir()
	demoOf(t, named(t, "evm"), data, "other", 2)
	opened, err := store.Dir(data).OpenNetwork("passed", kv.Options{})
	if err == nil {
		err = errors.Join(forwarded.Create(t.Context(), opened), opened.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	checkUnserved(t, data, "network passed is not served: it needs entries in the configuration: its answers come from other nodes (want upstream)")
}

// checkUnserved checks that the network other of a data directory is served, and that another one is not, for a
// reason that the status gives with and without a server.
func checkUnserved(t *testing.T, data, why string) {
	t.Helper()
	status, err := ReadStatus(t.Context(), data, "")
	if err != nil || len(status.Networks) != 1 || status.Networks[0].Name != "other" || len(status.Unserved) != 1 || !strings.Contains(status.Unserved[0].String(), why) {
		t.Errorf("status: %+v, %v", status, err)
	}
	s, stop := serving(t, data)
	defer stop()
	if all := s.Networks(); len(all) != 1 || all[0].Name != "other" {
		t.Errorf("served: %+v", all)
	}
	served, err := ReadStatus(t.Context(), data, "")
	if err != nil || !slices.Equal(served.Unserved, status.Unserved) {
		t.Errorf("status of the server: %+v, %v, want %+v", served, err, status.Unserved)
	}
}
