// Command tail measures how late the latest answers are. A thousand connections ask the
// service: nine tenths look something up at a steady pace, and one tenth sends one heavy call
// after the other.
//
//	go run ./bench/chaingen -out /tmp/chain -blocks 3000
//	go run ./bench/tail -chain /tmp/chain -time 20s
//
// Look-ups are blocks, transactions, receipts, balances and slots. Heavy calls are traces of
// blocks, logs of the whole chain, sums of 100 balances and proofs. Each kind of connection has a
// key of its own. The delay of a look-up counts from the moment at which it was due, so an answer
// that is late delays the next one of its connection, and both are counted.
//
// It measures in phases: look-ups alone; with heavy calls; and with heavy calls while blocks
// arrive and settle, while another network is imported, while backups are made, and all of it at
// once. The store compacts its files in the phases that write. For each phase it prints the
// median and the last percentile of look-ups and their ratio, the heavy calls, and the longest
// pause of the collector among the last 256. Only the phases that -phases names are measured.
//
// Everything shares the machine, including the clients, which are all in this process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ashlar/internal/node"
)

type options struct {
	chain       string // folder with genesis.json and chain.rlp
	connections int
	heavy       int // of them
	pace        time.Duration
	every       time.Duration
	length      time.Duration
	cache       string
	profile     string
	phases      []phase
}

func main() {
	log.SetFlags(log.Ltime)
	var o options
	flag.StringVar(&o.chain, "chain", "", "folder with genesis.json and chain.rlp, as bench/chaingen writes it")
	flag.IntVar(&o.connections, "connections", 1000, "connections")
	flag.IntVar(&o.heavy, "heavy", 100, "connections that send heavy calls")
	flag.DurationVar(&o.pace, "pace", time.Second, "time between two look-ups of a connection")
	flag.DurationVar(&o.every, "every", time.Second, "time between two blocks")
	flag.DurationVar(&o.length, "time", 20*time.Second, "length of a phase")
	flag.StringVar(&o.cache, "cache", "512MiB", "the service's cache")
	flag.StringVar(&o.profile, "profile", "", "file for a trace of the service's execution in the last phase, 5 s long, for go tool trace")
	names := flag.String("phases", "", "only phases whose name matches this expression")
	flag.Parse()
	chosen, err := regexp.Compile(*names)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tail: -phases:", err)
		os.Exit(2)
	}
	o.phases = slices.DeleteFunc(slices.Clone(phases), func(p phase) bool { return !chosen.MatchString(p.name) })
	if o.chain == "" || len(o.phases) == 0 || flag.NArg() > 0 || o.heavy < 0 || o.connections <= o.heavy || o.pace <= 0 || o.every <= 0 || o.length <= 0 {
		fmt.Fprintln(os.Stderr, "tail: expected -chain DIR, -phases that matches a phase, more connections than heavy ones, and times above 0")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, o); err != nil {
		log.Print("tail: ", err)
		os.Exit(1)
	}
}

// phase is what happens beside the look-ups.
type phase struct {
	name                            string
	heavy, blocks, imports, backups bool
}

var phases = []phase{
	{name: "look-ups alone"},
	{name: "heavy calls", heavy: true},
	{name: "heavy calls; blocks arrive and settle", heavy: true, blocks: true},
	{name: "heavy calls; an import", heavy: true, imports: true},
	{name: "heavy calls; backups", heavy: true, backups: true},
	{name: "all of it", heavy: true, blocks: true, imports: true, backups: true},
}

func measure(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "ashlar-tail-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chain, err := readChain(o.chain)
	if err != nil {
		return err
	}
	s, err := serve(ctx, dir, chain, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	fmt.Println("| beside look-ups | look-ups/s | p50, ms | p99, ms | p99/p50 | failed | heavy/s | p50, ms | p99, ms | longest pause, ms |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for i, p := range o.phases {
		if i == len(o.phases)-1 && o.profile != "" {
			defer s.trace(ctx, o.profile)()
		}
		if err := s.run(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// run measures one phase and prints its row.
func (s *served) run(ctx context.Context, p phase) error {
	beside, stop := context.WithCancel(ctx)
	defer stop()
	var working tasks
	if p.blocks {
		working.start(func() error { return s.grow(beside) })
	}
	if p.imports {
		working.start(func() error { return s.importAgain(beside) })
	}
	if p.backups {
		working.start(func() error { return s.backUpAgain(beside) })
	}
	heavy := 0
	if p.heavy {
		heavy = s.options.heavy
	}
	if _, _, err := s.ask(ctx, s.options.length/4, heavy); err != nil { // until all of it is under way
		return err
	}
	lookups, heavies, err := s.ask(ctx, s.options.length, heavy)
	stop()
	if err := errors.Join(err, working.wait()); err != nil {
		return err
	}
	pause, err := s.longestPause(ctx)
	if err != nil {
		return err
	}
	p50, p99 := lookups.quantile(.5), lookups.quantile(.99)
	fmt.Printf("| %s | %.0f | %.2f | %.2f | %.1f | %d | %.0f | %.1f | %.1f | %.2f |\n", p.name,
		lookups.rate(s.options.length), p50, p99, p99/p50, lookups.failed+heavies.failed,
		heavies.rate(s.options.length), heavies.quantile(.5), heavies.quantile(.99), pause)
	if lookups.why != "" || heavies.why != "" {
		log.Printf("%s: failed: %s", p.name, strings.TrimSpace(lookups.why+" "+heavies.why))
	}
	return nil
}

// write writes the blocks that are there when the service starts, and returns the file.
func (c *chain) write(dir string) (string, error) {
	path := filepath.Join(dir, "settled.rlp")
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	for _, block := range c.blocks[1:c.settled] {
		if err := block.EncodeRLP(file); err != nil {
			return "", errors.Join(err, file.Close())
		}
	}
	return path, file.Close()
}

// finish waits until a command has ended.
func finish(p *node.Process, err error) error {
	if err == nil {
		_, err = p.Wait()
	}
	return err
}
