package command

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"strings"
	"testing"

	"ashlar/account/control"
	"ashlar/internal/await"
	"ashlar/internal/vectors"
	"ashlar/kv"
)

// TestWorkOnServedNetworks: commands that write to a network which a server has open are
// refused, and say how it can be done; with Pause, the server serves the result. A removed
// network is served no more. The other network stays as it is.
func TestWorkOnServedNetworks(t *testing.T) {
	data := t.TempDir()
	demoOf(t, named(t, "evm"), data, "other", 2)
	demoOf(t, named(t, "evm"), data, "small", 8)
	if err := importFiles(t, data, "l2", "SN_SEPOLIA", "sepolia_block_0.json"); err != nil {
		t.Fatal(err)
	}
	_, stop := serving(t, data)
	defer stop()
	served := func() map[string]uint64 {
		t.Helper()
		status, err := ReadStatus(t.Context(), data, "")
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]uint64)
		for _, n := range status.Networks {
			got[n.Name] = n.Head
		}
		return got
	}
	heads := func(want map[string]uint64) {
		t.Helper()
		if got := served(); !maps.Equal(got, want) {
			t.Errorf("served: %v, expected %v", got, want)
		}
	}
	rewind := Rewind{Data: data, Network: "small", To: 5}
	if err := rewind.Run(t.Context(), new(strings.Builder), os.Stderr); !errors.Is(err, kv.ErrInUse) || !strings.Contains(err.Error(), "--pause") {
		t.Errorf("rewind without a pause: %v", err)
	}
	rewind.Pause = true
	if err := rewind.Run(t.Context(), new(strings.Builder), os.Stderr); err != nil {
		t.Fatal(err)
	}
	heads(map[string]uint64{"other": 2, "small": 5, "l2": 0})

	imported := Import{Data: data, Network: "l2", Family: "starknet", Pause: true, Flags: map[string]string{"chain": "SN_SEPOLIA"},
		Files: []string{vectors.Path(t, "starknet", "feeder", "sepolia_block_1.json")}}
	if err := imported.Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	heads(map[string]uint64{"other": 2, "small": 5, "l2": 1})

	rewind.To = 7 // above the head
	if err := rewind.Run(t.Context(), new(strings.Builder), os.Stderr); err == nil {
		t.Error("a rewind to a block above the head did not fail")
	}
	// What failed does not wait until its network is served again.
	await.Until(t, "three networks to be served", func() bool { return len(served()) == 3 })
	if listed, err := RemoveNetwork(t.Context(), data, "l2"); err != nil || listed {
		t.Errorf("remove: listed %t, %v", listed, err)
	}
	p, err := pause(t.Context(), data, control.Borrowing{Network: "l2"})
	if err != nil || p.client != nil {
		t.Errorf("pause of a network that is gone: %v", err)
	}
	heads(map[string]uint64{"other": 2, "small": 5})
}

// TestPauseRefused: the server's error, which names the network, is shown as it is.
func TestPauseRefused(t *testing.T) {
	data, other := t.TempDir(), t.TempDir()
	demoOf(t, named(t, "evm"), data, "small", 2)
	demoOf(t, named(t, "evm"), other, "small", 2)
	s, stop := serving(t, data)
	defer stop()
	s.Pinned = []string{"small"}
	for name, run := range map[string]func(context.Context, io.Writer, *os.File) error{
		"rewind": Rewind{Data: data, Network: "small", To: 1, Pause: true}.Run,
		"join":   Join{Data: data, Network: "small", From: other, Pause: true}.Run,
	} {
		if err := run(t.Context(), io.Discard, os.Stderr); err == nil || strings.Count(err.Error(), "network small: ") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
