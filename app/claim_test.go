package app

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/limit"
)

// claimed claims a name as a process that ends with the test.
func claimed(t *testing.T, b *board, name string) *claim {
	t.Helper()
	c, err := claimName(t.Context(), b, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestClaims: processes with one name have names of their own while they live. One that takes the place of another has its name,
// whether that one was ended or killed: it adds up what that one has counted.
func TestClaims(t *testing.T) {
	b := &board{posts: make(map[string][]byte)}
	expect := func(what string, got *claim, want string) {
		t.Helper()
		if got.name != want {
			t.Errorf("%s: %q, want %q", what, got.name, want)
		}
	}
	first, other := claimed(t, b, "localhost :8545"), claimed(t, b, "localhost :8546")
	expect("the first", first, "localhost :8545")
	expect("another name", other, "localhost :8546")
	second := claimed(t, b, "localhost :8545")
	expect("beside the first", second, "localhost :8545 2")
	expect("beside both", claimed(t, b, "localhost :8545"), "localhost :8545 3")
	first.close()
	ended := claimed(t, b, "localhost :8545")
	expect("after the first", ended, "localhost :8545")
	ended.stop() // as if it was killed: its post stays
	<-ended.ended
	expect("after one that was killed", claimed(t, b, "localhost :8545"), "localhost :8545")
}

// TestClaimsAtOnce: processes that begin at once have different names.
func TestClaimsAtOnce(t *testing.T) {
	b := &board{posts: make(map[string][]byte)}
	var mu sync.Mutex
	names := make(map[string]bool)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			c := claimed(t, b, "localhost :8545")
			mu.Lock()
			defer mu.Unlock()
			if names[c.name] {
				t.Errorf("two processes have the name %q", c.name)
			}
			names[c.name] = true
		})
	}
	all.Wait()
}

// TestClaimIsLost: a process that could not renew its claim, and whose name another one has taken meanwhile, says so.
func TestClaimIsLost(t *testing.T) {
	b := &board{posts: make(map[string][]byte)}
	first := claimed(t, b, "localhost :8545")
	first.stop() // it is paused
	<-first.ended
	claimed(t, b, "localhost :8545")
	await.Until(t, "a clash", func() bool { first.renew(t.Context()); time.Sleep(time.Millisecond); return first.clash })
}

// steady is a board on which everything takes the same time.
type steady struct{ *board }

func (b steady) Post(ctx context.Context, name string, value []byte, keep time.Duration) error {
	time.Sleep(5 * time.Millisecond)
	return b.board.Post(ctx, name, value, keep)
}

func (b steady) Posts(ctx context.Context) (map[string][]byte, error) {
	time.Sleep(5 * time.Millisecond)
	return b.board.Posts(ctx)
}

// TestClaimsInStep: processes that begin at once do not give way to each other again and again.
func TestClaimsInStep(t *testing.T) {
	b := steady{&board{posts: make(map[string][]byte)}}
	few := map[string]bool{"localhost :8545": true}
	for n := 2; n <= 12; n++ {
		few[fmt.Sprintf("localhost :8545 %d", n)] = true
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			c, err := claimName(t.Context(), b, "localhost :8545")
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(c.close)
			if !few[c.name] {
				t.Errorf("%q after so many attempts", c.name)
			}
		})
	}
	all.Wait()
}

// TestBeginningIsNoClash: a process that begins, and has claimed a name until it has seen that this one has it, counts nothing under
// that name.
func TestBeginningIsNoClash(t *testing.T) {
	b := &board{posts: make(map[string][]byte)}
	first := claimed(t, b, "localhost :8545")
	first.stop() // the test renews it
	<-first.ended
	look := func() { first.posted = claimLook - 1; first.renew(t.Context()) }
	other := &claim{board: b, poster: limit.OtherPosts + "other", name: first.name}
	post := func() {
		if err := other.post(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	post()
	look()
	if first.clash {
		t.Error("a process that begins counts as one that has the name")
	}
	post()
	look()
	if !first.clash {
		t.Error("a process that has the name for longer is not seen")
	}
}
