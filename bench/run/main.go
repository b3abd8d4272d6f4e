// Command run compares Ashlar with geth on one chain: the duration of the import, the
// disk and memory used, and the requests of each kind answered per second.
//
//	go run ./bench/run -blocks 6000
//	go run ./bench/run -chain DIR -peer reth=http://127.0.0.1:8645
//
// It needs wrk, and geth on PATH or in ASHLAR_GETH. It prints tables in Markdown and
// writes all measurements to results.json in its work folder; -svg draws a chart of the
// rates. The sections are
//
//	single   single requests of every kind
//	ages     kinds that are about a block, for old and new blocks
//	batches  light kinds, in batches of 100 calls
//	sockets  light kinds, over WebSocket and over HTTP
//	busy     light kinds, while another process imports the chain
//
// wrk generates the load, except in sockets, where a generator of our own loads both
// transports.
//
// bench/chaingen generates the chain. Requests use the keys that occur in it, spread over
// all keys and blocks. Both are generated from the seed. Servers take turns, and so do the
// transports of sockets, in alternating order from round to round, and the median of the
// rounds counts. All servers and wrk share the machine.
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
	"slices"
	"strconv"
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
	geth        []string
	peers       peerFlag
	sections    string
	kinds       string
	requests    int
	rounds      int
	seconds     int
	connections int
	svg         string
}

// peerFlag is name=url or name=url,PID, repeatable: servers that already have the chain.
type peerFlag []*peer

func (f *peerFlag) String() string { return "" }

func (f *peerFlag) Set(s string) error {
	name, url, ok := strings.Cut(s, "=")
	url, process, named := strings.Cut(url, ",")
	pid, err := strconv.ParseUint(process, 10, 31)
	if !ok || name == "" || !strings.HasPrefix(url, "http") || named && err != nil {
		return fmt.Errorf("invalid peer %q (want name=url or name=url,PID)", s)
	}
	*f = append(*f, &peer{Name: name, client: node.NewClient(url), pid: node.PID(pid)})
	return nil
}

func main() {
	log.SetFlags(log.Ltime)
	var o options
	flag.IntVar(&o.blocks, "blocks", 6000, "blocks in the chain")
	flag.IntVar(&o.txs, "txs", 60, "mean number of transactions in a block")
	flag.Uint64Var(&o.seed, "seed", 2, "seed of the chain and of the requests")
	flag.StringVar(&o.chain, "chain", "", "folder with genesis.json and chain.rlp, used instead of generating a chain")
	flag.StringVar(&o.work, "work", "", "folder for the chain, the data and the requests, kept afterwards (default a temporary one)")
	geth := flag.String("geth", "hash", "state schemes of geth to measure: hash, path, hash,path or none")
	flag.Var(&o.peers, "peer", "name=url or name=url,PID of another server that already has the chain; with its process ID, its processor time and memory are measured, too; repeatable")
	flag.StringVar(&o.sections, "sections", "single,ages,batches,sockets,busy", "sections to measure")
	flag.StringVar(&o.kinds, "kinds", ".", "regular expression that selects the kinds of request to measure")
	flag.IntVar(&o.requests, "requests", 2000, "different requests of each kind")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds for each kind")
	flag.IntVar(&o.seconds, "seconds", 4, "seconds of load in a round")
	flag.IntVar(&o.connections, "connections", 16, "connections of the load generator")
	flag.StringVar(&o.svg, "svg", "", "file for a chart of the rates as multiples of the first peer's")
	flag.Parse()
	o.geth = strings.Split(*geth, ",")
	if flag.NArg() > 0 || o.blocks < 100 || o.rounds < 1 || o.seconds < 1 || o.connections < 1 || o.requests < 1 {
		fmt.Fprintln(os.Stderr, "run: invalid flags (want no arguments, at least 100 blocks, and at least 1 of everything else)")
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
	ctx, cancel := context.WithCancel(ctx) // stops what is still running when a step fails
	defer cancel()
	chosen, err := regexp.Compile(o.kinds)
	if err != nil {
		return err
	}
	for _, name := range strings.Split(o.sections, ",") {
		if _, ok := sections()[name]; !ok {
			return fmt.Errorf("unknown section %q (want single, ages, batches, sockets or busy)", name)
		}
	}
	for _, scheme := range o.geth {
		if !slices.Contains([]string{"none", string(node.HashScheme), string(node.PathScheme)}, scheme) {
			return fmt.Errorf("unknown state scheme of geth %q (want hash, path, hash,path or none)", scheme)
		}
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		return fmt.Errorf("find the load generator: %w", err)
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
		if err := p.measureMemory(); err != nil {
			return err
		}
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
