package command

import (
	"context"
	"errors"
	"os"
	"testing"

	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// TestImportLeavesAnother: an import that fails does not remove the network that another process has
// made since the import looked for it, neither while that has it open nor afterwards.
func TestImportLeavesAnother(t *testing.T) {
	failed := errors.New("it fails")
	for name, closed := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			data := store.Dir(t.TempDir())
			i := Import{Data: string(data), Network: "one"}
			i.begin = func(_ context.Context, _ family.Family, p family.Place) (family.Import, error) {
				other, err := data.OpenNetwork("one", kv.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if closed {
					if err := other.Close(); err != nil {
						t.Fatal(err)
					}
				} else {
					t.Cleanup(func() { other.Close() })
				}
				own, err := p.Open(kv.Options{})
				if err != nil {
					return nil, err
				}
				return nil, errors.Join(failed, own.Close())
			}
			err := i.Run(t.Context(), os.Stderr)
			if want := map[bool]error{false: kv.ErrInUse, true: failed}[closed]; !errors.Is(err, want) {
				t.Errorf("import: %v, want %v", err, want)
			}
			if !data.Has("one") {
				t.Error("the network of the other process is removed")
			}
		})
	}
}
