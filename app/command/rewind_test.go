package command

import (
	"errors"
	"os"
	"strings"
	"testing"

	"ashlar/app/store"
	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/family"
	"ashlar/history/retention"
	"ashlar/history/rewind"
	"ashlar/kv"
)

// TestRewind takes a network of each family back, and back again, verifies it, and refuses
// what cannot be done.
func TestRewind(t *testing.T) {
	for _, name := range []string{"evm", "starknet"} {
		dir := t.TempDir()
		demoOf(t, named(t, name), dir, "small", 8)
		first := uint64(0)
		if status, err := ReadStatus(t.Context(), dir, ""); err != nil {
			t.Fatal(err)
		} else {
			first = status.Networks[0].First
		}
		for _, to := range []uint64{first + 5, first + 5, first + 2} {
			var out strings.Builder
			if err := (Rewind{Data: dir, Network: "small", To: to}).Run(t.Context(), &out, os.Stderr); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out.String(), "small: went back from block ") {
				t.Errorf("it says %q", out.String())
			}
			status, err := ReadStatus(t.Context(), dir, "")
			if err != nil || status.Networks[0].Head != to || status.Networks[0].Settled != to {
				t.Errorf("%s: %+v, %v after a rewind to block %d", name, status, err, to)
			}
			v := Verify{Data: dir, Network: "small", Verification: family.Verification{To: Head}}
			if err := v.Run(t.Context(), &out, os.Stderr); err != nil {
				t.Error(err)
			}
		}
		if err := (Rewind{Data: dir, Network: "small", To: first + 3}).Run(t.Context(), os.Stdout, os.Stderr); !errors.Is(err, rewind.ErrNotSettled) {
			t.Errorf("%s: forward: %v, want ErrNotSettled", name, err)
		}
		if err := (Rewind{Data: dir, Network: "other"}).Run(t.Context(), os.Stdout, os.Stderr); err == nil || store.Dir(dir).Has("other") {
			t.Errorf("%s: a network that does not exist: %v", name, err)
		}
		held, err := store.Dir(dir).OpenNetwork("small", kv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := (Rewind{Data: dir, Network: "small", To: first}).Run(t.Context(), os.Stdout, os.Stderr); !errors.Is(err, kv.ErrInUse) {
			t.Errorf("%s: an open store: %v, want ErrInUse", name, err)
		}
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRewindBelowWindow refuses to take a network back below its window, with the first block
// with state, and takes it back to that block.
func TestRewindBelowWindow(t *testing.T) {
	dir := t.TempDir()
	demoOf(t, named(t, "evm"), dir, "small", 8)
	opened, err := store.Dir(dir).OpenNetwork("small", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(t.Context(), opened)
	if err == nil {
		err = window.New(a, opened, retention.Window{State: 4}, window.Options{}).Move(t.Context())
	}
	if err := errors.Join(err, opened.Close()); err != nil {
		t.Fatal(err)
	}
	err = (Rewind{Data: dir, Network: "small", To: 4}).Run(t.Context(), os.Stdout, os.Stderr)
	if want := "network small: historical state is not available at block 4 (the first block with state is 5)"; err == nil || err.Error() != want {
		t.Errorf("below the window: %v, want %s", err, want)
	}
	var out strings.Builder
	if err := (Rewind{Data: dir, Network: "small", To: 5}).Run(t.Context(), &out, os.Stderr); err != nil {
		t.Error(err)
	}
	if err := (Verify{Data: dir, Network: "small", Verification: family.Verification{To: Head}}).Run(t.Context(), &out, os.Stderr); err != nil {
		t.Error(err)
	}
}
