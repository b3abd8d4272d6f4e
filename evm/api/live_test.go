package api_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/chain"
	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/pool"
	"ashlar/evm/query"
	"ashlar/gateway"
	"ashlar/history/tip"
	"ashlar/internal/await"
	"ashlar/jsonrpc"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// branches builds blocks on any block that it has built.
type branches struct {
	t        testing.TB
	genesis  *types.Block
	follower *ingest.Follower
	nonces   map[common.Hash]uint64 // of the sender after a block
	built    uint64
}

// newBranches begins with the genesis block of the made chain.
func newBranches(t testing.TB) *branches {
	_, follower := newFollower(t, ingest.Depths{Unfinalized: 1 << 20, Most: 1 << 20})
	first := madeGenesis().ToBlock()
	return &branches{t: t, genesis: first, follower: follower, nonces: map[common.Hash]uint64{first.Hash(): 0}}
}

// newFollower makes a chain that can be asked and followed.
func newFollower(t testing.TB, depths ingest.Depths) (*query.Chain, *ingest.Follower) {
	t.Helper()
	return newFollowerWith(t, depths, archive.DefaultStateCache)
}

// newFollowerWith is newFollower with caches of the state of another size.
func newFollowerWith(t testing.TB, depths ingest.Depths, cacheBytes int64) (*query.Chain, *ingest.Follower) {
	t.Helper()
	g := madeGenesis()
	store, settled, executor := newChain(t, g)
	settled.CacheState(cacheBytes)
	if _, err := ingest.New(t.Context(), settled, executor, g); err != nil {
		t.Fatal(err)
	}
	first, _ := settled.Settled()
	unsettled, err := tip.Open(t.Context(), store, archive.Tables(), first)
	if err != nil {
		t.Fatal(err)
	}
	return query.NewChain(settled, unsettled, executor), ingest.NewFollower(settled, unsettled, executor, depths)
}

// block builds a block that writes some logs, each with other data than any before.
func (b *branches) block(parent *types.Block, logs int) *types.Block {
	b.t.Helper()
	if err := b.follower.SetHead(b.t.Context(), parent.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
		b.t.Fatal(err)
	}
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		b.t.Fatal(err)
	}
	config := madeGenesis().Config
	signer := types.LatestSigner(config)
	nonce := b.nonces[parent.Hash()]
	block, leftOut, err := b.follower.Build(b.t.Context(), func(header *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error) {
		var transactions types.Transactions
		for range logs {
			b.built++
			transactions = append(transactions, types.MustSignNewTx(key, signer, &types.DynamicFeeTx{
				ChainID: config.ChainID, Nonce: nonce, GasTipCap: big.NewInt(1), GasFeeCap: new(big.Int).Add(baseFee, big.NewInt(1)),
				Gas: madeTransaction, To: &logger, Data: common.BigToHash(new(big.Int).SetUint64(b.built)).Bytes(),
			}))
			nonce++
		}
		b.built++
		return execute.Attributes{
			Timestamp: header.Time + 1, GasLimit: header.GasLimit, PrevRandao: common.BigToHash(new(big.Int).SetUint64(b.built)),
			ParentBeaconRoot: common.Hash{1}, Withdrawals: types.Withdrawals{},
		}, transactions, nil
	})
	if err != nil || len(leftOut) > 0 {
		b.t.Fatal(err, leftOut)
	}
	b.nonces[block.Hash()] = nonce
	return block
}

// The keys of the clients of a live service.
const (
	firstKey  = "0123456789abcdef0123456789abcdef"
	secondKey = "1123456789abcdef0123456789abcdef"
)

type twoKeys struct{}

func (twoKeys) Check(key string) (*account.Key, bool) {
	return &account.Key{ID: account.KeyID{key[0]}}, key == firstKey || key == secondKey
}

// clock is a time that stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// live is a network that is served by the gateway while blocks come.
type live struct {
	api      *api.API
	t        testing.TB
	chain    *query.Chain
	follower *ingest.Follower
	methods  jsonrpc.Handlers
	url      string // without its scheme
	sent     uint64 // transactions
}

// serveLive serves the made chain's genesis, and runs all that belongs to it.
func serveLive(t testing.TB, depths ingest.Depths, config api.Config) *live {
	t.Helper()
	chain, follower := newFollower(t, depths)
	view, err := chain.View()
	if err != nil {
		t.Fatal(err)
	}
	waiting := pool.New(chain.Executor().Config(), pool.DefaultLimits())
	if err := waiting.Reset(t.Context(), pool.Head{Header: madeGenesis().ToBlock().Header(), State: view.State(0)}, nil); err != nil {
		t.Fatal(err)
	}
	chain.SetPool(waiting)
	api := api.New(chain, config)
	handler, err := gateway.New(gateway.Config{
		Networks: []gateway.Network{{Name: "live", Methods: methodsOf(api)}}, Keys: twoKeys{}, Log: slog.New(slog.DiscardHandler),
		RPC: jsonrpc.Config{Log: slog.New(slog.DiscardHandler)},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := gateway.Listen(t.Context(), gateway.ListenConfig{Address: "127.0.0.1:0"}, handler)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	runPool := func(ctx context.Context) error { return chain.RunPool(ctx, nil) }
	for _, run := range []func(context.Context) error{server.Run, api.Run, follower.Run, runPool} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return &live{t: t, api: api, chain: chain, follower: follower, methods: methodsOf(api).Handlers(), url: server.Addr().String()}
}

func (l *live) add(block *types.Block) {
	l.t.Helper()
	if err := l.follower.Add(l.t.Context(), block); err != nil {
		l.t.Fatal(err)
	}
}

// setHead makes a block the head, unless the branch that it is on has been given up.
func (l *live) setHead(block *types.Block) bool {
	l.t.Helper()
	err := l.follower.SetHead(l.t.Context(), block.Hash(), chain.Ref{}, chain.Ref{})
	if err != nil && !errors.Is(err, tip.ErrUnknownBlock) {
		l.t.Fatal(err)
	}
	return err == nil
}

// sendTransaction sends a transaction to the pool.
func (l *live) sendTransaction() (hash string) {
	l.t.Helper()
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		l.t.Fatal(err)
	}
	config := l.chain.Executor().Config()
	tx := types.MustSignNewTx(key, types.LatestSigner(config), &types.DynamicFeeTx{
		ChainID: config.ChainID, Nonce: l.sent, Gas: madeTransaction, GasFeeCap: big.NewInt(1e11), GasTipCap: big.NewInt(2), To: &logger,
	})
	l.sent++
	if err := l.chain.Pool().Add(l.t.Context(), tx); err != nil {
		l.t.Fatal(err)
	}
	return tx.Hash().Hex()
}

// post sends a request over HTTP.
func (l *live) post(key, request string) string {
	l.t.Helper()
	response, err := http.Post("http://"+l.url+"/v3/"+key, "application/json", strings.NewReader(request))
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(answer)
}

// dial opens a WebSocket.
func (l *live) dial(key string) *liveSocket {
	l.t.Helper()
	conn, _, err := websocket.Dial(l.t.Context(), "ws://"+l.url+"/ws/v3/"+key, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(100 << 20)
	return &liveSocket{l.t, conn}
}

// liveSocket is a client's end of a WebSocket.
type liveSocket struct {
	t    testing.TB
	conn *websocket.Conn
}

func (s *liveSocket) send(message string) {
	s.t.Helper()
	if err := s.conn.Write(s.t.Context(), websocket.MessageText, []byte(message)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *liveSocket) receive() string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), await.Patience)
	defer cancel()
	_, message, err := s.conn.Read(ctx)
	if err != nil {
		s.t.Fatal("waiting for a message: ", err)
	}
	return string(message)
}
