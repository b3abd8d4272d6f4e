package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"text/template"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/source/demo"
	"ashlar/family"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"
)

// Demo implements [family.Presenter].
func (Family) Demo() (family.Demo, error) {
	crossing := demo.Default()
	osaka := crossing
	osaka.AmsterdamBlock = 0
	shown, err := demo.New(crossing)
	if err != nil {
		return nil, err
	}
	before, err := demo.New(osaka)
	if err != nil {
		return nil, err
	}
	return demoNetwork{shown: shown, before: before}, nil
}

// demoNetwork implements [family.Demo]. A network whose past is long enough enters
// Amsterdam in it. A shorter one stays in Osaka: blocks of now would be of Amsterdam by
// their time, before the traffic is.
type demoNetwork struct{ shown, before *demo.Network }

// by returns the network that follows a configuration.
func (d demoNetwork) by(config *params.ChainConfig) *demo.Network {
	if config.AmsterdamTime == nil {
		return d.before
	}
	return d.shown
}

// Name implements [family.Demo].
func (demoNetwork) Name() string { return "demo" }

// Create implements [family.Demo].
func (d demoNetwork) Create(ctx context.Context, p family.Place, blocks uint64) error {
	shown := d.shown
	if blocks < shown.AmsterdamBlock() {
		shown = d.before
	}
	stored, served, err := storedDemo(ctx, p)
	if err != nil {
		return err
	}
	if stored != nil { // it was begun with another past, and keeps its rules
		shown = d.by(stored)
	}
	i, err := createDemo(ctx, p, shown)
	if errors.Is(err, archive.ErrOtherChain) {
		return fmt.Errorf("the directory has another network %s, such as that of another version (want another directory): %w", p.Name, err)
	}
	if err != nil {
		return err
	}
	if served {
		return i.Close() // a longer past would replace the blocks that were shown
	}
	blocks = max(blocks, shown.AmsterdamBlock()) // a block that is made now is after the fork's time
	return errors.Join(d.makePast(ctx, i, blocks), i.Close())
}

// storedDemo returns the configuration of a demo that is stored, nil if none is, and whether it has unsettled blocks: then it was
// served.
func storedDemo(ctx context.Context, p family.Place) (rules *params.ChainConfig, served bool, err error) {
	store, err := p.Open(kv.Options{})
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	a, err := archive.Open(ctx, store)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	settled, _ := a.Settled()
	unsettled, err := tip.Open(ctx, store, archive.Tables(), settled)
	if err != nil {
		return nil, false, err
	}
	return a.Genesis().Config, unsettled.Len() > 0, nil
}

func createDemo(ctx context.Context, p family.Place, shown *demo.Network) (*imported, error) {
	first, err := shown.Genesis()
	if err != nil {
		return nil, err
	}
	return create(ctx, p, kv.Options{}, first, nil)
}

// makePast builds the blocks of the network's past that are not there.
func (d demoNetwork) makePast(ctx context.Context, i *imported, blocks uint64) error {
	head, _ := i.archive.Settled()
	if head.Number >= blocks {
		return nil
	}
	traffic, err := replay(ctx, d.by(i.archive.Genesis().Config), head.Number, i.archive.Header, i.archive.StateAt(head.Number))
	if err != nil {
		return err
	}
	for number := head.Number + 1; number <= blocks; number++ {
		_, leftOut, err := i.importer.Build(ctx, func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error) {
			contents, err := traffic.Next(number, baseFee)
			return attributesOf(contents, parent), contents.Transactions, err
		})
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		if len(leftOut) > 0 {
			if err := traffic.Resume(nonces(ctx, i.archive.StateAt(number))); err != nil {
				return err
			}
		}
	}
	return nil
}

// Start implements [family.Demo]. As in a network that follows nodes, an error such as a full disk stops
// the blocks until its cause is gone.
func (d demoNetwork) Start(ctx context.Context, n family.Network, interval time.Duration) (func(context.Context) error, error) {
	served := n.(*network)
	m, err := newMiner(ctx, d.by(served.executor.Config()), served)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return m.follower.Run(ctx) })
		group.Go(func() error { return m.runPool(ctx) })
		group.Go(func() error {
			return m.mining.Keep(ctx, func(ctx context.Context) error { return family.AtIntervals(ctx, interval, m.mine) })
		})
		return group.Wait()
	}, nil
}

// Introduce implements [family.Demo].
func (d demoNetwork) Introduce(out io.Writer, url string, blocks uint64) error {
	examples, err := d.shown.Examples()
	if err != nil {
		return err
	}
	return introduction.Execute(out, map[string]any{
		"URL": url, "Examples": examples, "Past": blocks / 3,
		"PastHex": hexutil.EncodeUint64(blocks / 3), "LaterHex": hexutil.EncodeUint64(min(blocks/3+9, blocks)),
	})
}

var introduction = template.Must(template.New("").Parse(`For wallets and tools: chain ID {{.Examples.ChainID}}, and an account with ether. Its key is public, so never use it elsewhere:

  address      {{.Examples.Visitor}}
  private key  {{.Examples.VisitorKey}}

Send ether from it, with Foundry's cast:

  cast send --rpc-url {{.URL}} --private-key {{.Examples.VisitorKey}} --value 1ether {{.Examples.Sender}}

The same with curl, signed already, as the account's first transaction:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["{{.Examples.FirstPayment}}"]}'

Paste one of these. The newest block:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]}'

The balance of an account in a token:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"{{.Examples.Token}}","data":"{{.Examples.BalanceOfHolder}}"},"latest"]}'

The transfers of that token in some blocks:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"address":"{{.Examples.Token}}","topics":["{{.Examples.TransferTopic}}"],"fromBlock":"{{.PastHex}}","toBlock":"{{.LaterHex}}"}]}'

The same balance as it was in block {{.Past}}, with its proof:

  curl -s {{.URL}} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_getProof","params":["{{.Examples.Token}}",["{{.Examples.HolderSlot}}"],"{{.PastHex}}"]}'

`))
