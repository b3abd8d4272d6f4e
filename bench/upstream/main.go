// Command upstream measures networks whose answers come from other nodes: the processor time
// of a call, how many calls are answered without a node, how long answers take when nodes are
// slow or fail, what many networks cost, and what proven answers take of a node.
//
//	go run ./bench/upstream -calls 20000
//	ASHLAR_GETH=/path/to/geth go run ./bench/upstream -sections verified
//
// The nodes run in this program, which is also the client; only the service's own time is
// shown. The section verified needs a geth and a chain that bench/chaingen generates.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ashlar/internal/node"
)

// bench is what the sections share.
type bench struct {
	calls, askers int
	networks      int
	dir           string // temporary
	bin           string
}

func main() {
	b := new(bench)
	flag.IntVar(&b.calls, "calls", 20_000, "calls of each row")
	flag.IntVar(&b.askers, "askers", 4, "calls at a time")
	flag.IntVar(&b.networks, "networks", 50, "networks in one process")
	sections := flag.String("sections", "calls,reuse,nodes,networks", "what to measure: calls, reuse, nodes, networks, verified")
	flag.Parse()
	if b.calls < 100 || b.askers < 1 || b.networks < 2 || flag.NArg() > 0 {
		log.Fatal("upstream: invalid flags (want at least 100 calls, 1 asker and 2 networks, and no arguments)")
	}
	if err := b.run(context.Background(), strings.Split(*sections, ",")); err != nil {
		log.Fatal(err)
	}
}

func (b *bench) run(ctx context.Context, sections []string) (err error) {
	if b.dir, err = os.MkdirTemp("", "ashlar-upstream-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.bin, err = node.BuildAshlar(ctx, b.dir); err != nil {
		return err
	}
	all := map[string]func(context.Context) error{
		"calls": b.measureCalls, "reuse": b.measureReuse, "nodes": b.measureNodes, "networks": b.measureNetworks, "verified": b.measureVerified,
	}
	for _, name := range sections {
		measure := all[name]
		if measure == nil {
			return fmt.Errorf("unknown section %q (want calls, reuse, nodes, networks or verified)", name)
		}
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Println()
	}
	return nil
}

// served is a running service.
type served struct {
	*node.Process
	*node.Client
	operator string // address of the operator's listener
}

// serve starts the service with networks, written as lines of YAML, of which the client asks
// the one called main. It returns when that has a head.
func (b *bench) serve(ctx context.Context, networks ...string) (*served, error) {
	var addresses [2]string // public, operator's
	for i := range addresses {
		var err error
		if addresses[i], err = node.FreeAddress(); err != nil {
			return nil, err
		}
	}
	data, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return nil, err
	}
	ashlar := node.Ashlar{Bin: b.bin, Data: data}
	key, err := ashlar.CreateKey(ctx)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(data, "ashlar.yaml")
	text := fmt.Sprintf("data: %s\nlisten: %s\noperator: %s\nnetworks:\n%s", data, addresses[0], addresses[1], strings.Join(networks, ""))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	process, err := ashlar.ServeBy(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &served{process, node.NewClient("http://" + addresses[0] + "/main/v3/" + key), addresses[1]}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var head string
		if err = s.Call(ctx, &head, "eth_blockNumber"); err == nil {
			return s, nil
		}
		if time.Since(start) > time.Minute {
			s.Kill()
			return nil, fmt.Errorf("no head: %w; the service's last words:\n%s", err, s.Output())
		}
	}
}
