package password

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

func quick() Params { return Params{MemoryKiB: 8, Passes: 1, Lanes: 1} }

func TestCheck(t *testing.T) {
	h := NewHasher(quick())
	stored, err := h.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.Hash(t.Context(), "correct horse")
	if err != nil || stored == again {
		t.Errorf("twice the same: %s, %v", stored, err)
	}
	raised := NewHasher(Params{MemoryKiB: 16, Passes: 1, Lanes: 1})
	for _, c := range []struct {
		name             string
		hasher           *Hasher
		stored, password string
		right, outdated  bool
	}{
		{"the password", h, stored, "correct horse", true, false},
		{"another", h, stored, "correct horsf", false, false},
		{"none", h, stored, "", false, false},
		{"with other parameters", raised, stored, "correct horse", true, true},
		{"another, with other parameters", raised, stored, "x", false, false},
		{"of nothing", h, "", "correct horse", false, false},
		{"nothing of nothing", h, "", "", false, false},
	} {
		right, outdated, err := c.hasher.Check(t.Context(), c.stored, c.password)
		if err != nil || right != c.right || outdated != c.outdated {
			t.Errorf("%s: right %t, outdated %t, %v", c.name, right, outdated, err)
		}
	}
}

// A hash made by another program is accepted, so the stored form is the standard one.
func TestKnownHash(t *testing.T) {
	// Output of the reference implementation:
	// echo -n password | argon2 somesalt -id -t 2 -k 256 -p 1
	const stored = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	if right, outdated, err := NewHasher(quick()).Check(t.Context(), stored, "password"); err != nil || !right || !outdated {
		t.Errorf("right %t, outdated %t, %v", right, outdated, err)
	}
}

func TestDamagedHashes(t *testing.T) {
	const salt, hash = "c29tZXNhbHQ", "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	for _, stored := range []string{
		"x", "$argon2i$v=19$m=8,t=1,p=1$" + salt + "$" + hash, "$argon2id$v=16$m=8,t=1,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=8,t=1$" + salt + "$" + hash, "$argon2id$v=19$m=8,t=0,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=4294967295,t=1,p=1$" + salt + "$" + hash, "$argon2id$v=19$m=8,t=1,p=1,x=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=8,t=1,p=1$$" + hash, "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$", "$argon2id$v=19$m=8,t=1,p=1$!$" + hash,
		"$argon2id$v=19$m=08,t=1,p=1$" + salt + "$" + hash,
	} {
		_, _, err := NewHasher(quick()).Check(t.Context(), stored, "password")
		if err == nil || strings.Contains(err.Error(), hash) || strings.Contains(err.Error(), salt) {
			t.Errorf("%s: %v", stored, err)
		}
	}
}

// Few passwords are hashed at once, few are queued, and the others are rejected.
func TestHashingIsBounded(t *testing.T) {
	h := NewHasher(quick())
	for range hashesAtOnce() { // occupy all slots
		if _, err := h.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	refused := make(chan error, 4*maxWaiting)
	for range 4 * maxWaiting {
		waiting.Go(func() {
			_, _, err := h.Check(ctx, "", "x")
			refused <- err
		})
	}
	for range 3 * maxWaiting {
		if err := <-refused; !errors.Is(err, ErrBusy) {
			t.Errorf("one too many: %v", err)
		}
	}
	cancel()
	for range maxWaiting {
		if err := <-refused; !errors.Is(err, context.Canceled) {
			t.Errorf("one that waited: %v", err)
		}
	}
	waiting.Wait()
}

func BenchmarkCheck(b *testing.B) {
	h := NewHasher(DefaultParams())
	for b.Loop() {
		if _, _, err := h.Check(b.Context(), "", "correct horse"); err != nil {
			b.Fatal(err)
		}
	}
}
