package main

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"ashlar/evm/source/demo"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// network is the name of the chain's network in the service.
const network = "dev"

// chain is a geth that makes a block when it receives transactions.
type chain struct {
	process *node.Process
	client  *node.Client
	socket  string
	genesis string // path of the file
	key     *ecdsa.PrivateKey
	signer  types.Signer
	txs     int // sent at once
	nonce   uint64
	head    common.Hash // the last one that grow has seen
}

func startChain(ctx context.Context, dir string, txs int) (*chain, error) {
	bin, err := node.FindGeth()
	if err != nil {
		return nil, err
	}
	config := demo.Default()
	config.AmsterdamBlock = 0 // whose rules the measured geth need not know
	shown, err := demo.New(config)
	if err != nil {
		return nil, err
	}
	genesis, err := shown.Genesis()
	if err != nil {
		return nil, err
	}
	c := &chain{genesis: filepath.Join(dir, "genesis.json"), signer: types.LatestSigner(genesis.Config), txs: txs}
	if c.key, err = crypto.GenerateKey(); err != nil {
		return nil, err
	}
	genesis.Alloc[crypto.PubkeyToAddress(c.key.PublicKey)] = types.Account{Balance: new(big.Int).Mul(big.NewInt(1e6), big.NewInt(params.Ether))}
	text, err := json.Marshal(genesis)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.genesis, text, 0o600); err != nil {
		return nil, err
	}
	g := node.Geth{Bin: bin, Data: filepath.Join(dir, "geth"), Scheme: node.HashScheme}
	if err := g.Init(ctx, c.genesis); err != nil {
		return nil, err
	}
	c.process, c.client, c.socket, err = g.ServeDev(ctx)
	return c, err
}

// startService starts a service that follows the chain.
func startService(ctx context.Context, dir string, c *chain) (*node.Process, *node.Client, error) {
	bin, err := node.BuildAshlar(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	config := filepath.Join(dir, "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  %s:\n    genesis: %s\n    source: %s\n", network, c.genesis, c.socket)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, nil, err
	}
	a := node.Ashlar{Bin: bin, Data: filepath.Join(dir, "data"), Network: network, Config: config}
	return a.Serve(ctx)
}

// grow sends transactions the given number of times. It returns when all are in blocks, or
// when ctx is done.
func (c *chain) grow(ctx context.Context, times int, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range times {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.send(ctx); err != nil {
			return err
		}
	}
	return c.awaitMined(ctx)
}

func (c *chain) send(ctx context.Context) error {
	var calls [][]any
	for range c.txs {
		tx, err := types.SignNewTx(c.key, c.signer, &types.DynamicFeeTx{
			ChainID: c.signer.ChainID(), Nonce: c.nonce, Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(1),
			GasFeeCap: big.NewInt(100 * params.GWei), GasTipCap: big.NewInt(params.GWei),
		})
		if err != nil {
			return err
		}
		raw, err := tx.MarshalBinary()
		if err != nil {
			return err
		}
		c.nonce++
		calls = append(calls, []any{hexutil.Bytes(raw)})
	}
	return c.client.Batch(ctx, "eth_sendRawTransaction", calls, func(int, json.RawMessage) error { return nil })
}

// awaitMined returns when all transactions are in blocks.
func (c *chain) awaitMined(ctx context.Context) error {
	for {
		var nonce hexutil.Uint64
		if err := c.client.Call(ctx, &nonce, "eth_getTransactionCount", crypto.PubkeyToAddress(c.key.PublicKey), "latest"); err != nil {
			return err
		}
		if uint64(nonce) == c.nonce {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var block struct{ Hash common.Hash }
	err := c.client.Call(ctx, &block, "eth_getBlockByNumber", "latest", false)
	c.head = block.Hash
	return err
}
