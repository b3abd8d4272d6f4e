package app

import (
	"context"
	crypto "crypto/rand"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"ashlar/kv"
	"ashlar/limit"
	"ashlar/retry"
)

// claim is the name under which a process of a cluster counts usage. No other living process has it: one that reads what another
// one has written as its own would count it twice. Machines may have the same name, such as localhost.
//
// A process claims a name by a post that changes every claimEvery. One that begins posts first and looks then. So of two that
// begin at once, at least one sees the other and takes another name. A claim whose post does not change is that of a
// process that was killed. The pauses between looks are random: otherwise two that begin at once could see each other change
// under each further name.
type claim struct {
	board  kv.Board
	poster string // the name of the post, random
	name   string
	posted uint64

	seen  map[string]uint64 // number of posts of other processes with the same name
	clash bool              // another living process has the name

	stop  context.CancelFunc // ends the goroutine that renews the claim
	ended chan struct{}      // closed when it has ended
}

const (
	claimEvery = time.Second
	claimKept  = 10 * time.Second // how long the post of a process that was killed stays
	claimWatch = 3 * claimEvery   // after which a post that has not changed is of such a process
	claimLook  = 10               // posts between two looks at those of others
)

// claimName claims a name, or that name with a number if a living process has it, until the claim is closed.
func claimName(ctx context.Context, board kv.Board, name string) (*claim, error) {
	c := &claim{board: board, poster: limit.OtherPosts + crypto.Text()}
	for n := 1; ; n++ {
		if c.name = name; n > 1 {
			c.name = fmt.Sprintf("%s %d", name, n)
		}
		taken, err := c.taken(ctx)
		if err != nil {
			return nil, fmt.Errorf("name of this process: %w", err)
		}
		if !taken {
			c.hold(ctx)
			return c, nil
		}
		slog.Warn("another process has the name of this machine and listens at the same address, so this one counts usage under another name", "taken", c.name)
	}
}

// taken reports whether another living process has the name.
func (c *claim) taken(ctx context.Context) (bool, error) {
	c.seen = nil
	for end := time.Now().Add(claimWatch); ; {
		if err := c.post(ctx); err != nil {
			return false, err
		}
		alive, others, err := c.look(ctx)
		if err != nil || alive {
			return alive, err
		}
		if others == 0 || time.Now().After(end) {
			return false, nil
		}
		if err := retry.Sleep(ctx, rand.N(claimEvery/2)); err != nil {
			return false, err
		}
	}
}

// post renews the claim.
func (c *claim) post(ctx context.Context) error {
	c.posted++
	return c.board.Post(ctx, c.poster, []byte(strconv.FormatUint(c.posted, 10)+" "+c.name), claimKept)
}

// look reads the claims of others to the name, and reports whether one has changed since the last look. One that was not there then
// may be that of a process that begins and will take another name.
func (c *claim) look(ctx context.Context) (alive bool, others int, err error) {
	posts, err := c.board.Posts(ctx)
	if err != nil {
		return false, 0, err
	}
	now := make(map[string]uint64)
	for poster, value := range posts {
		number, name, _ := strings.Cut(string(value), " ")
		if poster == c.poster || !strings.HasPrefix(poster, limit.OtherPosts) || name != c.name {
			continue
		}
		posted, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			continue
		}
		before, known := c.seen[poster]
		alive = alive || known && before != posted
		now[poster] = posted
	}
	c.seen = now
	return alive, len(now), nil
}

// hold renews the claim until it is closed, from now on: others must see it while this process opens its stores and waits for leases.
func (c *claim) hold(ctx context.Context) {
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.ended = make(chan struct{})
	go func() {
		defer close(c.ended)
		for retry.Sleep(ctx, claimEvery) == nil {
			c.renew(ctx)
		}
	}()
}

// renew renews the claim, and looks now and then whether another process has claimed the name while this one could not renew it.
// Failures are those of the store, which others report.
func (c *claim) renew(ctx context.Context) {
	if c.post(ctx) != nil || c.posted%claimLook != 0 {
		return
	}
	alive, _, err := c.look(ctx)
	if err != nil {
		return
	}
	if alive && !c.clash {
		slog.Error("another process counts usage under the same name, so usage may be counted twice: restart one of them", "name", c.name)
	}
	c.clash = alive
}

// close gives the name up, so that the next process that begins need not watch the claim. A nil claim does nothing.
func (c *claim) close() {
	if c == nil {
		return
	}
	c.stop()
	<-c.ended
	ctx, cancel := context.WithTimeout(context.Background(), claimEvery)
	defer cancel()
	_ = c.board.Post(ctx, c.poster, []byte("ended"), claimEvery) // if it fails, the next process waits
}
