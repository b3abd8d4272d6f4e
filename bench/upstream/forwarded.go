package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"ashlar/forwarded/forwardtest"
	"ashlar/internal/node"
)

// The chain of the nodes in this program.
const (
	chainHead  = 1000
	chainFinal = 900
)

// newNode starts a node that does little for a call.
func newNode() *forwardtest.Node {
	n := forwardtest.New(forwardtest.Chain{Head: chainHead, Final: chainFinal, LogsPer: 2})
	n.Answer = func(method string, _ []json.RawMessage) (any, *forwardtest.Error, bool) {
		return "0x1", nil, method == "eth_getBalance"
	}
	return n
}

// network returns the YAML of a forwarded network.
func network(name string, urls ...string) string {
	return fmt.Sprintf("  %s: {upstream: [\"%s\"]}\n", name, strings.Join(urls, `", "`))
}

// measureCalls measures the processor time of calls.
func (b *bench) measureCalls(ctx context.Context) error {
	n := newNode()
	defer n.Stop()
	s, err := b.serve(ctx, network("main", n.URL))
	if err != nil {
		return err
	}
	defer s.Kill()
	direct, err := b.ask(ctx, node.NewClient(n.URL), nil, b.calls, func(i int) []byte { return balance(i, "latest") })
	if err := errors.Join(err, direct.answered()); err != nil {
		return err
	}
	fmt.Printf("| %d calls, %d at a time | processor time of a call | p50 | p99 | calls at the node |\n|---|---:|---:|---:|---:|\n", b.calls, b.askers)
	fmt.Printf("| a balance, asked of the node directly | | %v | %v | 1.00 |\n", direct.quantile(0.5), direct.quantile(0.99))
	for _, row := range []struct {
		name    string
		request func(int) []byte
	}{
		{"`eth_chainId`, which no node is asked", func(int) []byte { return body("eth_chainId", "[]") }},
		{"a balance at the head, forwarded", func(i int) []byte { return balance(i, "latest") }},
		{"the same again, from memory", func(i int) []byte { return balance(i, "latest") }},
		{"a balance at a final block, forwarded and stored", func(i int) []byte { return balance(i, "0x10") }},
		{"the same again, from the store", func(i int) []byte { return balance(i, "0x10") }},
		{"a final block, from the store", func(i int) []byte {
			return body("eth_getBlockByNumber", fmt.Sprintf(`["%#x",false]`, i%100))
		}},
	} {
		asked := n.Total()
		l, err := b.ask(ctx, s.Client, s.Process, b.calls, row.request)
		if err := errors.Join(err, l.answered()); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		fmt.Printf("| %s | %.0f µs | %v | %v | %.2f |\n", row.name, l.micros(), l.quantile(0.5), l.quantile(0.99), float64(n.Total()-asked)/float64(b.calls))
	}
	return nil
}

// measureReuse measures how many calls are answered without a node, for questions of which few
// are asked often (Zipf's distribution).
func (b *bench) measureReuse(ctx context.Context) error {
	n := newNode()
	defer n.Stop()
	s, err := b.serve(ctx, network("main", n.URL))
	if err != nil {
		return err
	}
	defer s.Kill()
	fmt.Printf("| %d questions of 20,000, few of them often | answered without a node | processor time |\n|---|---:|---:|\n", b.calls)
	for _, blocks := range []string{"final", "newer"} {
		zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 25)), 1.1, 10, 20_000)
		requests := make([][]byte, b.calls)
		for i := range requests {
			which := int(zipf.Uint64())
			block := uint64(which % chainFinal)
			if blocks == "newer" {
				block = chainFinal + 1 + uint64(which)%(chainHead-chainFinal)
			}
			requests[i] = balance(which, fmt.Sprintf("%#x", block))
		}
		asked := n.Total()
		l, err := b.ask(ctx, s.Client, s.Process, b.calls, func(i int) []byte { return requests[i] })
		if err := errors.Join(err, l.answered()); err != nil { // no node was asked for some that failed
			return fmt.Errorf("%s blocks: %w", blocks, err)
		}
		fmt.Printf("| about %s blocks | %.0f %% | %.0f µs |\n", blocks, 100*(1-float64(n.Total()-asked)/float64(b.calls)), l.micros())
	}
	return nil
}

// measureNodes measures how long answers take with one slow and one failing node of three.
func (b *bench) measureNodes(ctx context.Context) error {
	const slow = 200 * time.Millisecond
	calls := b.calls / 4
	fmt.Printf("| %d calls, %d at a time | p50 | p99 | longest | failed | calls at nodes |\n|---|---:|---:|---:|---:|---:|\n", calls, b.askers)
	for _, row := range []struct {
		name       string
		slow, fail bool
	}{{"three good nodes", false, false}, {"one answers after 200 ms", true, false}, {"one answers after 200 ms, one with status 502", true, true}} {
		nodes := []*forwardtest.Node{newNode(), newNode(), newNode()}
		var urls []string
		for _, n := range nodes {
			defer n.Stop()
			urls = append(urls, n.URL)
		}
		s, err := b.serve(ctx, network("main", urls...))
		if err != nil {
			return err
		}
		defer s.Kill()
		time.Sleep(2 * time.Second) // all are known
		if row.slow {
			nodes[0].Set(func(n *forwardtest.Node) {
				n.Between = func(http.ResponseWriter, *http.Request) bool { time.Sleep(slow); return false }
			})
		}
		if row.fail {
			nodes[1].Set(func(n *forwardtest.Node) {
				n.Between = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
			})
		}
		asked := nodes[0].Total() + nodes[1].Total() + nodes[2].Total()
		l, err := b.ask(ctx, s.Client, s.Process, calls, func(i int) []byte { return balance(i, "latest") })
		if err != nil {
			return err
		}
		asked = nodes[0].Total() + nodes[1].Total() + nodes[2].Total() - asked
		fmt.Printf("| %s | %v | %v | %v | %d | %.2f |\n", row.name, l.quantile(0.5), l.quantile(0.99), l.quantile(1), l.failed, float64(asked)/float64(calls))
		s.Kill()
	}
	return nil
}

// measureNetworks measures what many networks in one process cost while nobody asks.
func (b *bench) measureNetworks(ctx context.Context) error {
	n := newNode()
	defer n.Stop()
	fmt.Print("| networks, nobody asks | memory | goroutines | processor time of a second |\n|---|---:|---:|---:|\n")
	for _, count := range []int{1, b.networks} {
		networks := []string{network("main", n.URL)}
		for i := 1; i < count; i++ {
			networks = append(networks, network(fmt.Sprintf("other%d", i), n.URL))
		}
		s, err := b.serve(ctx, networks...)
		if err != nil {
			return err
		}
		defer s.Kill()
		time.Sleep(5 * time.Second)
		before, err := s.CPU()
		if err != nil {
			return err
		}
		const watched = 10 * time.Second
		time.Sleep(watched)
		after, err := s.CPU()
		if err != nil {
			return err
		}
		memory, err := s.ResidentBytes()
		if err != nil {
			return err
		}
		goroutines, err := node.Metric(ctx, s.operator, "go_goroutines")
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %d MiB | %.0f | %.1f ms |\n", count, memory>>20, goroutines, float64((after-before).Milliseconds())/watched.Seconds())
		s.Kill()
	}
	return nil
}
