package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoGeth means that no geth was found on this machine.
var ErrNoGeth = errors.New("no geth: put it on PATH or name it in ASHLAR_GETH " +
	"(go install github.com/ethereum/go-ethereum/cmd/geth@v1.17.8)")

// FindGeth returns the path of geth: ASHLAR_GETH, or found in PATH.
func FindGeth() (string, error) {
	bin := os.Getenv("ASHLAR_GETH")
	if bin == "" {
		bin = "geth"
	}
	path, err := exec.LookPath(bin)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNoGeth, err)
	}
	return path, nil
}

// Scheme is a scheme in which geth stores its state.
type Scheme string

const (
	HashScheme Scheme = "hash" // every trie node of every block: supports proofs of any block
	PathScheme Scheme = "path" // state history; no proofs of old blocks
)

// Geth is geth as an archive node, with a data directory.
type Geth struct {
	Bin    string
	Data   string
	Scheme Scheme
	Full   bool   // a full node instead of an archive node
	Listen string // address of HTTP and WebSocket, so that it is the same after a restart; empty: a free one
}

func (g Geth) common() []string {
	args := []string{"--datadir", g.Data, "--state.scheme", string(g.Scheme)}
	if g.Full {
		return args
	}
	args = append(args, "--gcmode", "archive", "--history.transactions", "0", "--history.logs", "0")
	if g.Scheme == PathScheme {
		args = append(args, "--history.state", "0")
	}
	return args
}

// Init writes the genesis block.
func (g Geth) Init(ctx context.Context, genesis string) error {
	return run(ctx, g.Bin, "init", "--datadir", g.Data, "--state.scheme", string(g.Scheme), genesis)
}

// Import starts an import of chain files.
func (g Geth) Import(ctx context.Context, chain ...string) (*Process, error) {
	return start(ctx, g.Bin, append(append([]string{"import"}, g.common()...), chain...)...)
}

// ExportHistory writes blocks as history files, era1 or ere.
func (g Geth) ExportHistory(ctx context.Context, format, folder string, first, last uint64) error {
	return run(ctx, g.Bin, "export-history", "--datadir", g.Data, "--era.format", format, folder, fmt.Sprint(first), fmt.Sprint(last))
}

// ImportHistory imports the blocks and receipts of history files, era1 or ere, into a
// chain that has only its genesis. The files must have the name of a public network.
func (g Geth) ImportHistory(ctx context.Context, format, folder string) error {
	return run(ctx, g.Bin, "import-history", "--datadir", g.Data, "--era.format", format, folder)
}

// Serve starts geth without peers and returns when it answers requests. gasCap is the gas limit
// of calls, 0 for geth's default.
func (g Geth) Serve(ctx context.Context, gasCap uint64) (*Process, *Client, error) {
	p, c, _, err := g.listen(ctx, gasCapArgs(gasCap)...)
	return p, c, err
}

// DumpGenesis returns the genesis of the chain in the data directory, as a genesis file. Geth must not
// be running.
func (g Geth) DumpGenesis(ctx context.Context) ([]byte, error) {
	return exec.CommandContext(ctx, g.Bin, "--datadir", g.Data, "dumpgenesis").Output()
}

// ServeDev starts geth as a development chain: it makes a block whenever there are transactions. It
// begins with the genesis written by Init, or else with one of its own. socket is its WebSocket URL.
func (g Geth) ServeDev(ctx context.Context) (p *Process, c *Client, socket string, err error) {
	return g.listen(ctx, "--dev", "--rpc.txfeecap", "0")
}

// DrivenGeth is a geth that is driven over the Engine API.
type DrivenGeth struct {
	*Process
	Engine *Client
	Public *Client
	Socket string // WebSocket URL
}

// ServeEngine starts geth without peers, to be driven over the Engine API. gasCap is the gas
// limit of calls, 0 for geth's default.
func (g Geth) ServeEngine(ctx context.Context, gasCap uint64) (d DrivenGeth, err error) {
	address, err := FreeAddress()
	if err != nil {
		return d, err
	}
	_, port, _ := net.SplitHostPort(address)
	args := append([]string{"--syncmode", "full", "--authrpc.port", port}, gasCapArgs(gasCap)...)
	if d.Process, d.Public, d.Socket, err = g.listen(ctx, args...); err != nil {
		return d, err
	}
	d.Engine, err = NewEngineClient("http://"+address, filepath.Join(g.Data, "geth", "jwtsecret"))
	if err == nil {
		err = d.awaitReady(ctx, d.Engine) // geth listens here last
	}
	if err != nil {
		d.Kill()
	}
	return d, err
}

func gasCapArgs(gasCap uint64) []string {
	if gasCap == 0 {
		return nil
	}
	return []string{"--rpc.gascap", fmt.Sprint(gasCap)}
}

func (g Geth) listen(ctx context.Context, more ...string) (p *Process, c *Client, socket string, err error) {
	var addresses, ports [2]string // of HTTP and WebSocket, and of the Engine API
	for i := range addresses {
		if i == 0 && g.Listen != "" {
			addresses[i] = g.Listen
		} else if addresses[i], err = FreeAddress(); err != nil {
			return nil, nil, "", err
		}
		_, ports[i], _ = net.SplitHostPort(addresses[i])
	}
	const offered = "admin,eth,net,web3,debug,rpc,txpool"
	args := append(g.common(), "--ipcdisable", "--nodiscover", "--maxpeers", "0", "--port", "0", "--nat", "none",
		"--http", "--http.addr", "127.0.0.1", "--http.port", ports[0], "--http.api", offered,
		"--ws", "--ws.addr", "127.0.0.1", "--ws.port", ports[0], "--ws.api", offered,
		"--authrpc.addr", "127.0.0.1", "--authrpc.port", ports[1])
	if p, err = start(ctx, g.Bin, append(args, more...)...); err != nil {
		return nil, nil, "", err
	}
	c = NewClient("http://" + addresses[0])
	if err := p.awaitReady(ctx, c); err != nil {
		p.Kill()
		return nil, nil, "", fmt.Errorf("geth: %w", err)
	}
	return p, c, "ws://" + addresses[0], nil
}
