package account

import (
	"log/slog"
	"testing"

	"ashlar/kv/kvtest"
	"ashlar/retry"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A restriction that is stored when it is tried again is in the audit log once, even if the first attempt was applied.
func TestDoubtfulRestriction(t *testing.T) {
	for how := range kvtest.Outcomes {
		t.Run(how.String(), func(t *testing.T) {
			store := kvtest.NewDoubtful(openStore(t, vfs.NewMem()))
			accounts := openAccounts(t, store, Config{Shared: true, Retry: retry.New("store restrictions", slog.New(slog.DiscardHandler))})
			keys, err := OpenKeyring(t.Context(), accounts)
			if err != nil {
				t.Fatal(err)
			}
			issued, err := keys.Create(t.Context(), NewKey{Name: "leaked"})
			if err != nil {
				t.Fatal(err)
			}
			store.Fail, store.How = 1, how
			if k, err := keys.Revoke(t.Context(), "leaked"); err != nil || !k.Unsaved {
				t.Fatalf("revoke: %+v, %v", k, err)
			}
			if err := accounts.rows.save(t.Context()); err != nil {
				t.Fatal(err)
			}
			there := openShared(t, store.Store)
			if _, ok := there.Check(issued.APIKey); ok {
				t.Error("the revoked key is valid elsewhere")
			}
			entries, err := there.accounts.Audit(t.Context(), AuditQuery{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			revoked := 0
			for _, e := range entries {
				if e.Did == "revoke" {
					revoked++
				}
			}
			if revoked != 1 {
				t.Errorf("%d entries of the audit log say that it was revoked", revoked)
			}
		})
	}
}
