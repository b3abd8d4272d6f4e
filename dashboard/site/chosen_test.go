package site

import (
	"errors"
	"net/http"
	"testing"

	"ashlar/account"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A team whose row cannot be read is answered like one that does not exist.
func TestUnreadableTeam(t *testing.T) {
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	id, b := account.ID{1}, store.NewBatch()
	for _, table := range account.Tables() {
		if table.Name == "account_revisions" {
			b.Put(table, id[:], 0, []byte("\x01"+`{"role":"user","created":1,"team":{"name":"stone"},"moons":2}`))
		}
	}
	if err := store.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	accounts, err := account.OpenAccounts(t.Context(), store, account.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	r.SetPathValue("team", id.String())
	for _, role := range []account.Role{account.RoleUser, account.RoleOperator} {
		_, err := Choose(accounts, &account.Account{ID: account.ID{2}, Role: role}, r, Needs{Role: account.TeamViewer, Operators: true})
		if !errors.Is(err, account.ErrNoTeam) || errors.Is(err, account.ErrUnreadable) {
			t.Errorf("%s: %v", role, err)
		}
	}
}
