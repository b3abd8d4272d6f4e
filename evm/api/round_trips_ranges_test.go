package api_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// nearService serves a store without a wait, and without what a reader of a cluster keeps.
func nearService(t *testing.T, store kv.Store) *service {
	t.Helper()
	a, err := archive.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := execute.New(a.Genesis().Config)
	if err != nil {
		t.Fatal(err)
	}
	return serveConfigured(query.NewChain(a, nil, executor), api.Config{ClientVersion: "Ashlar/test"})
}

// TestRoundTripsOfRanges counts the waits of a walk over a trie when nothing is cached, and what it reads. The answers
// are those of a store whose reads take no time.
func TestRoundTripsOfRanges(t *testing.T) {
	store, blocks := distantChain(t)
	near := nearService(t, store)
	middle := common.Hash{0x7f, 0xff}
	for _, question := range []struct {
		what   string
		method string
		args   []any
		waits  int64 // at most: it depends on which of the reads that end together is seen first
		reads  int64
	}{
		{"11 accounts", "debug_accountRange", []any{"0x14", "0x", 11, true, true, true}, 22, 110},
		{"11 accounts from the middle on", "debug_accountRange", []any{"0x14", middle, 11, true, true, true}, 22, 110},
		{"256 accounts", "debug_accountRange", []any{"0x14", "0x", 256, true, true, true}, 65, 1000},
		{"256 accounts with code and storage", "debug_accountRange", []any{"0x14", "0x", 256, false, false, true}, 150, 4000},
		{"11 slots", "debug_storageRangeAt", []any{"0x14", 0, chaser, "0x", 11}, 24, 120},
		{"11 slots from the middle on", "debug_storageRangeAt", []any{"0x14", 0, chaser, middle, 11}, 24, 120},
		{"1000 slots", "debug_storageRangeAt", []any{"0x14", 0, chaser, "0x", 1000}, 110, 2500},
	} {
		want := near.answer(t, question.method, question.args...)
		synctest.Test(t, func(t *testing.T) {
			s, distant := distantService(t, store, blocks)
			distant.Count.Store(0)
			began := time.Now()
			answer := s.answer(t, question.method, question.args...)
			waits, reads := time.Since(began).Milliseconds(), distant.Count.Load()
			if answer.Error != nil || !bytes.Equal(answer.Result, want.Result) || len(answer.Result) < 500 {
				t.Errorf("%s: %.300s, error %s, expected %.300s", question.what, answer.Result, answer.Error, want.Result)
			}
			if waits > question.waits || reads > question.reads {
				t.Errorf("%s: %d round trips with %d statements, expected %d with %d at most", question.what, waits, reads, question.waits, question.reads)
			}
			t.Logf("%-35s %3d round trips, %4d statements", question.what, waits, reads)
		})
	}
}
