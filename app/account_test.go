package app

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/session"
	"ashlar/account/usage"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/evm/archive"
	"ashlar/history/tip"
	"ashlar/kv"
	starknetarchive "ashlar/starknet/archive"
)

// ask asks the block number with a key, with its password if that is not empty, and
// returns the status and the answer.
func ask(t *testing.T, s *Service, key, password string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.server.Addr().String()+"/v3/"+key,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if password != "" {
		request.SetBasicAuth("", password)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer.String()
}

// The whole life of an account's key, looked after from the shell beside a running
// server: what is done counts there at once, is counted, and outlives a restart.
func TestAccountsBesideARunningServer(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	ctx, data := t.Context(), t.TempDir()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen, c.Operator = data, "127.0.0.1:0", "127.0.0.1:0"
	s, _, stop := running(t, c)

	shell, closer, err := OpenAccounts(ctx, store.Dir(data), &config.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if url, err := shell.Dashboard(ctx); err != nil || url != "http://localhost:"+port(s) {
		t.Errorf("the dashboard is at %q, %v", url, err)
	}
	_, made, err := shell.Accounts.Create(ctx, account.NewAccount{Email: "somebody@example.org", Limits: account.Limits{PerDay: 4}})
	if err != nil {
		t.Fatal(err)
	}
	issued, err := shell.Keys.Create(ctx, account.NewKey{Owner: made.ID, Guarded: true})
	if err != nil {
		t.Fatal(err)
	}
	other, err := shell.Keys.Create(ctx, account.NewKey{Owner: made.ID})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, issued account.Issued, want int) {
		t.Helper()
		if status, answer := ask(t, s, issued.APIKey, issued.Password); status != want {
			t.Errorf("%s: %d %s, expected %d", what, status, answer, want)
		}
	}
	expect("a new key", issued, 200)
	expect("without its password", account.Issued{APIKey: issued.APIKey}, 401)
	rotated, err := shell.Keys.Rotate(ctx, issued.Key.ID.String(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	rotated.Password = issued.Password
	expect("its old text", issued, 200)
	expect("its new text", rotated, 200)
	if _, err := shell.Accounts.Disable(ctx, made.Email); err != nil {
		t.Fatal(err)
	}
	expect("of a disabled account", rotated, 401)
	if _, err := shell.Accounts.Enable(ctx, made.Email); err != nil {
		t.Fatal(err)
	}
	lines, err := shell.Usage.Read(ctx, usage.Query{Keys: []account.KeyID{issued.Key.ID}, To: time.Now().Add(time.Hour), By: usage.ByNetwork | usage.ByMethod})
	if err != nil || len(lines) != 2 || lines[0].Method != "" || lines[0].Refused[usage.Password] != 1 || // once without the password
		lines[1].Requests != 3 || lines[1].Method != "eth_blockNumber" || lines[1].Credits != 3 || lines[1].Counts.Time <= 0 {
		t.Errorf("usage %+v, %v", lines, err)
	}
	_, metrics := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	stop()

	s, _, stop = running(t, c)
	expect("after a restart", rotated, 200)
	expect("the rest of the account's day was spent before it", other, 429)
	stop()
	shell, closer, err = OpenAccounts(ctx, store.Dir(data), &config.Config{}) // nobody has it open now
	if err != nil {
		t.Fatal(err)
	}
	if last, err := shell.Usage.LastUsed(ctx, issued.Key.ID); err != nil || time.Since(last) > time.Hour {
		t.Errorf("last used %v, %v", last, err)
	}
	if _, err := shell.Keys.Revoke(ctx, issued.Key.ID.String()); err != nil {
		t.Error(err)
	}
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	s, _, stop = running(t, c)
	expect("revoked while no server ran", rotated, 401)
	stop()
	for _, hidden := range []string{issued.APIKey, issued.Password, rotated.APIKey, other.APIKey} {
		if strings.Contains(log.String(), hidden) || strings.Contains(metrics, hidden) {
			t.Error("a key or a password is in the log or in the metrics")
		}
	}
}

// No two tables have the same ID or name: they may meet in one store.
func TestTablesAreDistinct(t *testing.T) {
	ids, names := make(map[byte]string), make(map[string]bool)
	for _, tables := range [][]*kv.Table{account.Tables(), session.Tables(), usage.Tables(), archive.Tables(), starknetarchive.Tables(), tip.Tables()} {
		for _, table := range tables {
			if other, ok := ids[table.ID]; ok || names[table.Name] {
				t.Errorf("table %s has the ID %#x, as has %s, or a name that is taken", table.Name, table.ID, other)
			}
			ids[table.ID], names[table.Name] = table.Name, true
		}
	}
}

// A command that opens the accounts itself keeps to the number of keys of the configuration, as a server does.
func TestKeysOfAnAccountFromTheShell(t *testing.T) {
	for _, most := range []int{1, account.DefaultKeys + 1} {
		c := config.Default()
		c.Accounts.Keys = most
		shell, closer, err := OpenAccounts(t.Context(), store.Dir(t.TempDir()), &c)
		if err != nil {
			t.Fatal(err)
		}
		_, owner, err := shell.Accounts.Create(t.Context(), account.NewAccount{Email: "somebody@example.org"})
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for err == nil {
			if _, err = shell.Keys.Create(t.Context(), account.NewKey{Owner: owner.ID}); err == nil {
				made++
			}
		}
		if made != most || !errors.Is(err, account.ErrTooMany) {
			t.Errorf("%d keys, then %v; expected %d", made, err, most)
		}
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
	}
}
