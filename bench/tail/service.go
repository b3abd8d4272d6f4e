package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"ashlar/internal/fakenode"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

const (
	network     = "tail"
	finalBehind = 8 // blocks between the head and the finalized block
)

// chain is the chain that the service serves and follows.
type chain struct {
	genesis string // file
	chainID uint64
	blocks  []*types.Block // by number
	settled int            // how many of them are imported before the service starts
	signer  types.Signer
}

// readChain reads what bench/chaingen has written.
func readChain(folder string) (*chain, error) {
	c := &chain{genesis: filepath.Join(folder, "genesis.json")}
	text, err := os.ReadFile(c.genesis)
	if err != nil {
		return nil, err
	}
	var genesis core.Genesis
	if err := json.Unmarshal(text, &genesis); err != nil {
		return nil, fmt.Errorf("%s: %w", c.genesis, err)
	}
	c.chainID, c.signer = genesis.Config.ChainID.Uint64(), types.LatestSigner(genesis.Config)
	c.blocks = []*types.Block{genesis.ToBlock()}
	file, err := os.Open(filepath.Join(folder, "chain.rlp"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for stream := rlp.NewStream(bufio.NewReaderSize(file, 1<<20), 0); ; {
		block := new(types.Block)
		if err := stream.Decode(block); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		if block.NumberU64() != 0 { // some exports begin with the genesis block
			c.blocks = append(c.blocks, block)
		}
	}
	c.settled = len(c.blocks) * 3 / 4
	if c.settled < 2*finalBehind {
		return nil, fmt.Errorf("%s has %d blocks, expected at least %d", folder, len(c.blocks), 3*finalBehind)
	}
	return c, nil
}

// served is the running service, and the node that it follows.
type served struct {
	options  options
	dir      string
	chain    *chain
	shown    int // blocks that the node has shown
	upstream *fakenode.Node
	ashlar   node.Ashlar
	process  *node.Process
	url      string // of the service with the key for look-ups
	heavyURL string // with the key for heavy calls
	operator string
	clients  *http.Client
	asked    uint64 // how often ask was called
	made     int    // imports and backups
	making   sync.Mutex
}

// serve imports three quarters of the chain and starts the service.
func serve(ctx context.Context, dir string, c *chain, o options) (*served, error) {
	s := &served{options: o, dir: dir, chain: c, shown: c.settled, clients: newClient(o.connections)}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// start starts the node and the service. If it fails, close ends what has started.
func (s *served) start(ctx context.Context) (err error) {
	c := s.chain
	if s.upstream, err = fakenode.New(fakenode.Options{ChainID: c.chainID, Raw: true, Subscriptions: true}, c.blocks[0]); err != nil {
		return err
	}
	s.show()
	bin, err := node.BuildAshlar(ctx, s.dir)
	if err != nil {
		return err
	}
	s.ashlar = node.Ashlar{Bin: bin, Data: filepath.Join(s.dir, "data"), Network: network}
	settled, err := c.write(s.dir)
	if err != nil {
		return err
	}
	if err := finish(s.ashlar.Import(ctx, c.genesis, settled)); err != nil {
		return err
	}
	if s.operator, err = node.FreeAddress(); err != nil {
		return err
	}
	s.ashlar.Config = filepath.Join(s.dir, "ashlar.yaml")
	config := fmt.Sprintf("operator: %s\ncache: %s\nlimits: {key_rate: 0, address_rate: 0, account_rate: 0}\nnetworks: {%s: {genesis: %s, source: %q, pool: none}}\n",
		s.operator, s.options.cache, network, c.genesis, s.upstream.SocketURL())
	if err := os.WriteFile(s.ashlar.Config, []byte(config), 0o600); err != nil {
		return err
	}
	var client *node.Client
	if s.process, client, err = s.ashlar.Serve(ctx); err != nil {
		return err
	}
	s.url = client.URL
	key, err := s.ashlar.CreateKey(ctx)
	s.heavyURL = client.URL[:strings.LastIndexByte(client.URL, '/')+1] + key
	time.Sleep(time.Second) // until the service knows the key
	return err
}

// close ends the service and the node.
func (s *served) close() (err error) {
	if s.process != nil {
		err = s.process.Stop()
	}
	s.clients.CloseIdleConnections()
	if s.upstream != nil {
		s.upstream.Close()
	}
	return err
}

// show announces the blocks that are to be shown.
func (s *served) show() {
	final := uint64(s.shown - 1 - finalBehind)
	s.upstream.Set(s.chain.blocks[:s.shown], final, final)
}

// grow shows one block after the other.
func (s *served) grow(ctx context.Context) error {
	tick := time.NewTicker(s.options.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if s.shown == len(s.chain.blocks) {
			return errors.New("the chain is too short: expected more blocks, or more time between them")
		}
		s.shown++
		s.show()
	}
}

// importAgain imports the chain as another network, again and again.
func (s *served) importAgain(ctx context.Context) error {
	return s.again(ctx, func(name string) error {
		if err := s.command(ctx, "import", "--network", name, "--genesis", s.chain.genesis, filepath.Join(s.options.chain, "chain.rlp")); err != nil {
			return err
		}
		return s.command(ctx, "network", "remove", "--yes", name)
	})
}

// backUpAgain makes one whole backup of the network after the other.
func (s *served) backUpAgain(ctx context.Context) error {
	return s.again(ctx, func(name string) error {
		to := filepath.Join(s.dir, name)
		return errors.Join(s.command(ctx, "backup", "--network", network, "--to", to), os.RemoveAll(to))
	})
}

// again repeats until ctx is done. Each time has a name of its own.
func (s *served) again(ctx context.Context, do func(name string) error) error {
	for ctx.Err() == nil {
		s.making.Lock()
		s.made++
		name := "made" + strconv.Itoa(s.made)
		s.making.Unlock()
		if err := do(name); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (s *served) command(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, s.ashlar.Bin, append(args, "--data", s.ashlar.Data)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ashlar %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// longestPause returns the longest pause of the service's collector among the last 256, in
// milliseconds.
func (s *served) longestPause(ctx context.Context) (float64, error) {
	seconds, err := node.Metric(ctx, s.operator, `go_gc_duration_seconds{quantile="1"}`)
	return 1000 * seconds, err
}

// trace writes a trace of what the service executes, until the returned function is called.
func (s *served) trace(ctx context.Context, path string) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(s.options.length / 2)
		trace, err := node.Get(ctx, "http://"+s.operator+"/debug/pprof/trace?seconds=5")
		if err == nil {
			err = os.WriteFile(path, trace, 0o600)
		}
		if err != nil {
			log.Print("trace: ", err)
		}
	}()
	return func() { <-done }
}

// tasks are what happens beside look-ups.
type tasks struct {
	running sync.WaitGroup
	mu      sync.Mutex
	failed  error // guarded by mu
}

func (t *tasks) start(run func() error) {
	t.running.Go(func() {
		if err := run(); err != nil {
			t.mu.Lock()
			t.failed = errors.Join(t.failed, err)
			t.mu.Unlock()
		}
	})
}

func (t *tasks) wait() error {
	t.running.Wait()
	return t.failed
}
