// Command run measures Ashlar beside geth on one chain: how long the import
// takes, what is stored, and how many requests of each kind are answered a second.
//
//	go run ./bench/run -blocks 6000
//	go run ./bench/run -chain DIR -peer reth=http://127.0.0.1:8645
//
// It needs wrk, and geth on PATH or in ASHLAR_GETH. It prints tables in
// Markdown, and writes everything measured to results.json in its work folder; -svg
// names a file for a picture of it.
//
// Five sections: single requests of every kind; the kinds that are about a block, for
// old and new blocks; batches of 100 calls; WebSocket beside HTTP; the light kinds while
// another process imports the chain. wrk drives the servers but beside WebSocket, where
// a generator of its own drives both.
//
// The chain comes from bench/chaingen, the requests from what occurs in the
// chain, spread over all keys and blocks, both from seeds. Servers are driven in
// turn, one round after another in alternating order, and the median of the
// rounds counts. All of them, and wrk, share the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"ashlar/internal/node"
	"ashlar/internal/sample"
)

type options struct {
	blocks, txs int
	seed        uint64
	chain, work string
	geth        string
	peers       peerFlag
	sections    string
	kinds       string
	requests    int
	rounds      int
	seconds     int
	connections int
	svg         string
}

// peerFlag is name=url, as often as wanted: servers that hold the chain already.
type peerFlag []*peer

func (f *peerFlag) String() string { return "" }

func (f *peerFlag) Set(s string) error {
	name, url, ok := strings.Cut(s, "=")
	if !ok || name == "" || !strings.HasPrefix(url, "http") {
		return fmt.Errorf("%q: expected name=url", s)
	}
	*f = append(*f, &peer{Name: name, client: node.NewClient(url)})
	return nil
}

func main() {
	log.SetFlags(log.Ltime)
	var o options
	flag.IntVar(&o.blocks, "blocks", 6000, "blocks of the chain")
	flag.IntVar(&o.txs, "txs", 60, "mean transactions in a block")
	flag.Uint64Var(&o.seed, "seed", 2, "seed of the chain and of the requests")
	flag.StringVar(&o.chain, "chain", "", "folder with genesis.json and chain.rlp to use instead of a new chain")
	flag.StringVar(&o.work, "work", "", "folder for chain, data and requests, kept afterwards; a temporary one unless set")
	flag.StringVar(&o.geth, "geth", "hash", "geth's state schemes to measure: hash, path, hash,path or none")
	flag.Var(&o.peers, "peer", "name=url of another server that holds the chain already; may be given again")
	flag.StringVar(&o.sections, "sections", "single,ages,batches,sockets,busy", "which parts to measure")
	flag.StringVar(&o.kinds, "kinds", ".", "regular expression of the kinds of request to measure")
	flag.IntVar(&o.requests, "requests", 2000, "different requests of a kind")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds a kind")
	flag.IntVar(&o.seconds, "seconds", 4, "seconds of load in a round")
	flag.IntVar(&o.connections, "connections", 16, "connections of the load generator")
	flag.StringVar(&o.svg, "svg", "", "file for a picture of the rates beside those of the first peer")
	flag.Parse()
	if flag.NArg() > 0 || o.blocks < 100 || o.rounds < 1 || o.seconds < 1 || o.connections < 1 || o.requests < 1 {
		fmt.Fprintln(os.Stderr, "run: expected flags only, at least 100 blocks, and 1 or more of everything else")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Print("run: ", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	ctx, cancel := context.WithCancel(ctx) // ends whatever is still running when a step fails
	defer cancel()
	chosen, err := regexp.Compile(o.kinds)
	if err != nil {
		return err
	}
	for _, name := range strings.Split(o.sections, ",") {
		if _, ok := sections()[name]; !ok {
			return fmt.Errorf("no section %q: expected some of single, ages, batches, sockets and busy", name)
		}
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		return fmt.Errorf("the load generator is missing: %w", err)
	}
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "ashlar-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.work)) }()
	} else if err := os.MkdirAll(o.work, 0o755); err != nil {
		return err
	}
	if o.chain == "" {
		if o.chain, err = generateChain(ctx, o); err != nil {
			return err
		}
	}
	genesis, file := filepath.Join(o.chain, "genesis.json"), filepath.Join(o.chain, "chain.rlp")
	chain, err := sample.Read(genesis, file)
	if err != nil {
		return err
	}
	log.Printf("%d blocks, %d transactions", chain.Head(), len(chain.Txs))

	peers, err := startPeers(ctx, o, genesis, file)
	defer func() {
		for _, p := range peers {
			err = errors.Join(err, p.stop())
		}
	}()
	if err != nil {
		return err
	}
	log.Print("sampling logs and slots")
	if err := chain.Learn(ctx, peers[0].client); err != nil {
		return err
	}
	results := results{Blocks: chain.Head(), Transactions: len(chain.Txs), Started: time.Now().UTC(), Peers: peers}
	found, err := discover(ctx, peers[0].client, chain)
	if err != nil {
		return err
	}
	var files []requestFile
	for _, name := range strings.Split(o.sections, ",") {
		some, err := writeRequests(chain, o, sections()[name], chosen, found)
		if err != nil {
			return err
		}
		files = append(files, some...)
	}
	if results.Kinds, err = measure(ctx, o, peers, files); err != nil {
		return err
	}
	for _, p := range peers {
		p.measureMemory()
	}
	if err := results.write(os.Stdout, filepath.Join(o.work, "results.json")); err != nil || o.svg == "" {
		return err
	}
	return results.draw(o.svg)
}

func generateChain(ctx context.Context, o options) (string, error) {
	dir := filepath.Join(o.work, "chain")
	log.Print("generating the chain")
	c := exec.CommandContext(ctx, "go", "run", "ashlar/bench/chaingen", "-blocks", fmt.Sprint(o.blocks),
		"-txs", fmt.Sprint(o.txs), "-seed", fmt.Sprint(o.seed), "-out", dir)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("bench/chaingen: %w", err)
	}
	return dir, nil
}
