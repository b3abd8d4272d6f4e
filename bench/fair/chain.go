package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ashlar/internal/fakenode"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/params"
)

const (
	chainTxs    = 60                     // transactions of a block, each with a log
	chainPast   = 64                     // blocks before the service starts
	chainEvery  = 500 * time.Millisecond // between two blocks
	reorgEvery  = 7                      // blocks; then up to reorgDepth blocks are replaced
	reorgDepth  = 3
	finalBehind = 32 // blocks between the head and the finalized block
)

// logger writes a log with the topics 1, 2 and 3 and its input's first word as data.
var logger = common.HexToAddress("0x1099e40000000000000000000000000000000001")

// chain makes blocks of one chain and its branches.
type chain struct {
	genesis *core.Genesis
	db      ethdb.Database
	blocks  []*types.Block // of the current branch, the genesis block first
	made    int            // blocks of all branches
}

// newChain makes a chain with some blocks. Their times are in the past, and stay there for
// as many seconds as the chain gets blocks.
func newChain(blocks int) *chain {
	config := *params.MergedTestChainConfig
	config.PragueTime, config.OsakaTime, config.BPO1Time, config.BPO2Time, config.AmsterdamTime, config.UBTTime = nil, nil, nil, nil, nil, nil
	code := common.FromHex("60003560005260036002600160206000a300")
	c := &chain{genesis: &core.Genesis{
		Config: &config, GasLimit: 30_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(params.InitialBaseFee),
		Timestamp: uint64(time.Now().Add(-24 * time.Hour).Unix()),
		Alloc: types.GenesisAlloc{
			crypto.PubkeyToAddress(sender().PublicKey): {Balance: new(big.Int).Lsh(big.NewInt(1), 100)},
			logger: {Code: code, Balance: new(big.Int)},
		},
	}}
	c.db, _, _ = core.GenerateChainWithGenesis(c.genesis, beacon.New(ethash.NewFaker()), 0, func(int, *core.BlockGen) {})
	c.blocks = []*types.Block{c.genesis.ToBlock()}
	c.grow(blocks)
	return c
}

// grow adds blocks to the current branch.
func (c *chain) grow(n int) {
	config, key := c.genesis.Config, sender()
	signer, from := types.LatestSigner(config), crypto.PubkeyToAddress(key.PublicKey)
	parent := c.blocks[len(c.blocks)-1]
	added, _ := core.GenerateChain(config, parent, beacon.New(ethash.NewFaker()), c.db, n, func(_ int, b *core.BlockGen) {
		c.made++
		b.OffsetTime(1 - 10) // from ten seconds after the parent to one
		b.SetParentBeaconRoot(common.Hash{1})
		b.SetExtra(big.NewInt(int64(c.made)).Bytes()) // unlike all others
		for range chainTxs {
			b.AddTx(types.MustSignNewTx(key, signer, &types.DynamicFeeTx{
				ChainID: config.ChainID, Nonce: b.TxNonce(from), GasTipCap: big.NewInt(1), GasFeeCap: new(big.Int).Add(b.BaseFee(), big.NewInt(1)),
				Gas: 60_000, To: &logger, Data: common.BigToHash(big.NewInt(int64(b.TxNonce(from)))).Bytes(),
			}))
		}
	})
	c.blocks = append(slices.Clone(c.blocks), added...)
}

// drop ends the current branch some blocks earlier, so that grow makes another one.
func (c *chain) drop(n int) { c.blocks = c.blocks[:len(c.blocks)-n] }

// write writes the genesis file, and the blocks from one number on, to a folder.
func (c *chain) write(folder, name string, first int) (genesis, blocks string, err error) {
	genesis, blocks = filepath.Join(folder, "genesis.json"), filepath.Join(folder, name)
	text, err := json.Marshal(c.genesis)
	if err != nil {
		return "", "", err
	}
	var b bytes.Buffer
	for _, block := range c.blocks[first:] {
		if err := block.EncodeRLP(&b); err != nil {
			return "", "", err
		}
	}
	if err := os.WriteFile(genesis, text, 0o600); err != nil {
		return "", "", err
	}
	return genesis, blocks, os.WriteFile(blocks, b.Bytes(), 0o600)
}

// announce makes a node announce new blocks until ctx is done, some of which replace others.
func (c *chain) announce(ctx context.Context, n *fakenode.Node) {
	random := rand.New(rand.NewPCG(1, 0))
	tick := time.NewTicker(chainEvery)
	defer tick.Stop()
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		more := 1
		if i%reorgEvery == 0 {
			depth := 1 + random.IntN(reorgDepth)
			c.drop(depth)
			more += depth
		}
		c.grow(more)
		final := uint64(max(0, len(c.blocks)-1-finalBehind))
		n.Set(c.blocks, final, final)
	}
}

// sender returns the key that sends all transactions.
func sender() *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(common.Hash{31: 7}.Bytes())
	if err != nil {
		panic(err) // a constant
	}
	return key
}
