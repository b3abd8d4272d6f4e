package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm/source/geth"
	"ashlar/family"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/crypto"
)

// gethOrigin is the directory of a stopped geth as an [origin].
type gethOrigin struct{ *geth.Dir }

func openGeth(dir string, genesis *core.Genesis) (*gethOrigin, error) {
	source, err := geth.Open(dir)
	if err != nil {
		return nil, err
	}
	if want := genesis.ToBlock().Hash(); source.Genesis() != want {
		return nil, errors.Join(fmt.Errorf("%s: its genesis is %#x, expected %#x", dir, source.Genesis(), want), source.Close())
	}
	if source.Head().Number.Sign() == 0 {
		return nil, errors.Join(fmt.Errorf("%s: it has no state but that of the genesis, its head is block %d (want a geth that was stopped by SIGINT or SIGTERM)", dir, source.Last()), source.Close())
	}
	return &gethOrigin{source}, nil
}

// State implements [origin].
func (g *gethOrigin) State() chain.Ref {
	head := g.Head()
	return chain.Ref{Number: head.Number.Uint64(), Hash: head.Hash()}
}

// Contents implements [origin]. The directory is the operator's own, so one that took the place of another
// continues.
func (g *gethOrigin) Contents() common.Hash { return crypto.Keccak256Hash([]byte("geth")) }

// Prepare implements [origin]: it follows the headers down to the genesis.
func (g *gethOrigin) Prepare(ctx context.Context, show family.Show) (*big.Int, error) {
	from := g.State().Number
	if last := g.Last(); last > from {
		slog.Warn("geth has no state of its head", "head", last, "state", from)
	}
	var at atomic.Uint64
	at.Store(from)
	show.Begin("headers", func() (read, total int64) { return int64(from - at.Load()), int64(from) })
	return g.TotalDifficulty(ctx, at.Store)
}

// Continue implements [origin]. geth's later blocks come from files or nodes.
func (g *gethOrigin) Continue(context.Context, *imported, family.Show) error { return nil }
