package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"ashlar/internal/node"
	"ashlar/internal/sample"
)

// counter passes requests on to a node, and counts those that do not follow the head.
type counter struct {
	to *node.Client

	mu       sync.Mutex
	requests int // guarded by mu
	bytes    int // guarded by mu: of the answers
}

// ServeHTTP implements [http.Handler].
func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	status, answer, err := c.to.Post(r.Context(), body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	follows := false
	for _, part := range []string{`"latest",`, `"safe",`, `"finalized",`, "eth_chainId"} {
		follows = follows || strings.Contains(string(body), part)
	}
	if !follows {
		c.mu.Lock()
		c.requests++
		c.bytes += len(answer)
		c.mu.Unlock()
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// taken returns what was counted since it was called last.
func (c *counter) taken() (requests, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests, bytes = c.requests, c.bytes
	c.requests, c.bytes = 0, 0
	return requests, bytes
}

// measureVerified measures what proven answers take of a node: each question is new, on a chain
// that bench/chaingen generates. Requests follow each other, and a batch is one.
func (b *bench) measureVerified(ctx context.Context) error {
	bin, err := node.FindGeth()
	if err != nil {
		return err
	}
	folder := filepath.Join(b.dir, "chain")
	generate := exec.CommandContext(ctx, "go", "run", "ashlar/bench/chaingen", "-blocks", "400", "-txs", "20", "-out", folder)
	generate.Stderr = os.Stderr
	if err := generate.Run(); err != nil {
		return fmt.Errorf("bench/chaingen: %w", err)
	}
	genesis, file := filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp")
	geth := node.Geth{Bin: bin, Data: filepath.Join(b.dir, "geth"), Scheme: node.HashScheme}
	if err := geth.Init(ctx, genesis); err != nil {
		return err
	}
	p, err := geth.Import(ctx, file)
	if err != nil {
		return err
	}
	if _, err := p.Wait(); err != nil {
		return err
	}
	p, client, err := geth.Serve(ctx, 0)
	if err != nil {
		return err
	}
	defer p.Kill()
	c := &counter{to: client}
	server := httptest.NewServer(c)
	defer server.Close()
	chain, err := sample.Read(genesis, file)
	if err != nil {
		return err
	}
	if err := chain.Learn(ctx, client); err != nil {
		return err
	}
	s, err := b.serve(ctx, fmt.Sprintf("  main: {family: evm, upstream: [%q], check: state, genesis: %s}\n", server.URL, genesis))
	if err != nil {
		return err
	}
	defer s.Kill()
	return b.verifiedRows(ctx, s, c, chain)
}

// verifiedRows prints a row for each kind of question.
func (b *bench) verifiedRows(ctx context.Context, s *served, c *counter, chain *sample.Chain) error {
	fmt.Print("| proven answer | requests to the node | bytes from it | processor time |\n|---|---:|---:|---:|\n")
	calls := min(b.calls, 200)
	at := func(i int) (number uint64, transaction string) {
		tx := chain.Txs[i*37%len(chain.Txs)]
		return tx.Block, tx.Hash().Hex()
	}
	for _, row := range []struct {
		name    string
		request func(i int) []byte
	}{
		{"a block of 20 transactions", func(i int) []byte {
			number, _ := at(i)
			return body("eth_getBlockByNumber", fmt.Sprintf(`["%#x",true]`, number))
		}},
		{"a receipt", func(i int) []byte {
			_, transaction := at(i)
			return body("eth_getTransactionReceipt", fmt.Sprintf(`[%q]`, transaction))
		}},
		{"a balance at an old block", func(i int) []byte {
			number, _ := at(i)
			return balance(i, fmt.Sprintf("%#x", number))
		}},
		{"a trace of a transaction", func(i int) []byte {
			_, transaction := at(i)
			return body("debug_traceTransaction", fmt.Sprintf(`[%q,{"tracer":"callTracer"}]`, transaction))
		}},
	} {
		c.taken()
		l, err := b.ask(ctx, s.Client, s.Process, calls, row.request)
		if err := errors.Join(err, l.answered()); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		requests, bytes := c.taken()
		fmt.Printf("| %s | %.2f | %.0f | %.1f ms |\n", row.name, float64(requests)/float64(calls), float64(bytes)/float64(calls), l.micros()/1e3)
	}
	return nil
}
