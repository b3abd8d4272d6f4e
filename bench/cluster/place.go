package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ashlar/internal/node"
	"ashlar/internal/sample"
	"ashlar/kv/cassandra/cassandratest"

	"golang.org/x/sync/errgroup"
)

const network = "bench"

// place is where the chain is: in an embedded store, or on Cassandra nodes.
type place struct {
	folder string
	bin    string
	nodes  *cassandratest.Cluster // nil for an embedded store

	keyspace string
	store    string // the entry of the configuration that names the keyspace
}

// prepare imports the chain.
func prepare(ctx context.Context, o options, folder string) (*place, error) {
	p := &place{folder: folder}
	var err error
	if p.bin, err = node.BuildAshlar(ctx, folder); err != nil {
		return nil, err
	}
	writer := node.Ashlar{Bin: p.bin, Network: network, Data: filepath.Join(folder, "data")}
	switch {
	case len(o.hosts) > 0:
		p.nodes = &cassandratest.Cluster{Hosts: o.hosts}
	case o.jars != "":
		if p.nodes, err = cassandratest.Start(o.jars); err != nil {
			return nil, err
		}
	}
	if p.nodes != nil {
		p.keyspace = fmt.Sprint("bench_", os.Getpid())
		p.store = fmt.Sprintf("store: {cassandra: {hosts: [%s], keyspace: %s, datacenter: datacenter1}}\n", strings.Join(p.nodes.Hosts, ", "), p.keyspace)
		writer.Data, writer.Config = "", filepath.Join(folder, "writer.yaml")
		if err := os.WriteFile(writer.Config, []byte(p.store), 0o600); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	imported, err := writer.Import(ctx, filepath.Join(o.chain, "genesis.json"), filepath.Join(o.chain, "chain.rlp"))
	if err == nil {
		_, err = imported.Wait()
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// size returns what each node stores, on average. It ends the nodes; 0 if they are not this
// program's own.
func (p *place) size() (mean int64, err error) {
	if p.nodes == nil || !p.nodes.Started() {
		return 0, nil
	}
	for i := range p.nodes.Hosts {
		if err := p.nodes.Terminate(i); err != nil {
			return 0, err
		}
		size, err := p.nodes.StoredBytes(i, p.keyspace)
		if err != nil {
			return 0, err
		}
		mean += size / int64(len(p.nodes.Hosts))
	}
	return mean, nil
}

func (p *place) close() error {
	if p.nodes == nil || !p.nodes.Started() {
		return nil
	}
	return p.nodes.Stop()
}

// reader is a running reader.
type reader struct {
	client  *node.Client
	metrics string
	pid     int
	stop    func()
}

// start starts reader number i.
func (p *place) start(ctx context.Context, o options, i int) (*reader, error) {
	address, err := node.FreeAddress()
	if err != nil {
		return nil, err
	}
	if p.nodes != nil {
		config := filepath.Join(p.folder, fmt.Sprintf("reader%d.yaml", i))
		text := p.store + fmt.Sprintf("role: reader\nlame_duck: 0s\noperator: %s\ncache: %dMiB\n", address, o.cacheMiB)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return nil, err
		}
		process, client, err := node.Ashlar{Bin: p.bin, Network: network, Config: config}.Serve(ctx)
		if err != nil {
			return nil, err
		}
		return &reader{client, "http://" + address + metricsPath, process.PID(), process.Kill}, nil
	}
	store := filepath.Join(p.folder, fmt.Sprint("copy", i))
	if err := os.RemoveAll(store); err != nil {
		return nil, err
	}
	if err := os.CopyFS(store, os.DirFS(filepath.Join(p.folder, "data", "networks", network))); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, os.Args[0], serveCommand, "-store", store, "-listen", address, "-statement", o.statement.String(), "-cache", strconv.Itoa(o.cacheMiB))
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()
	}
	r := &reader{node.NewClient("http://" + address), "http://" + address + metricsPath, command.Process.Pid, stop}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err = readCounts(ctx, r.metrics); err == nil {
			return r, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			stop()
			return nil, fmt.Errorf("reader %d does not answer: %w", i, err)
		}
	}
}

// result is what one number of readers has done.
type result struct {
	length    time.Duration
	answers   int64
	latency   time.Duration // of all answers together
	processor time.Duration // of the readers
	nodes     time.Duration // of Cassandra, if the nodes are this program's own
	counts    counts
}

// run starts n readers, warms them up and measures them.
func (p *place) run(ctx context.Context, o options, chain *sample.Chain, n int) (r result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var working errgroup.Group
	var readers []*reader
	defer func() {
		cancel()
		err = errors.Join(err, working.Wait())
		for _, one := range readers {
			one.stop()
		}
	}()
	for i := range n {
		one, err := p.start(ctx, o, i)
		if err != nil {
			return r, err
		}
		readers = append(readers, one)
	}
	for _, one := range readers {
		working.Go(func() error { return govern(ctx, one.pid, o.share) })
	}
	var answers, latency atomic.Int64
	working.Go(func() error {
		defer cancel()
		return drive(ctx, o, chain, readers, &answers, &latency)
	})
	take := func() (now result, err error) {
		now.answers, now.latency = answers.Load(), time.Duration(latency.Load())
		for _, one := range readers {
			c, err := readCounts(ctx, one.metrics)
			used, usedErr := processorTime(one.pid)
			if err := errors.Join(err, usedErr); err != nil {
				return now, err
			}
			now.counts.add(c, 1)
			now.processor += used
		}
		now.nodes, err = p.nodesTime()
		return now, err
	}
	pause := func() error {
		select {
		case <-time.After(o.length):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := pause(); err != nil {
		return r, err
	}
	before, err := take()
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := pause(); err != nil {
		return r, err
	}
	if r, err = take(); err != nil {
		return r, err
	}
	r.length = time.Since(began)
	r.answers -= before.answers
	r.latency -= before.latency
	r.processor -= before.processor
	r.nodes -= before.nodes
	r.counts.add(before.counts, -1)
	return r, nil
}

// nodesTime returns the processor time of the nodes, 0 if they are not this program's own.
func (p *place) nodesTime() (sum time.Duration, err error) {
	if p.nodes == nil || !p.nodes.Started() {
		return 0, nil
	}
	for i := range p.nodes.Hosts {
		used, err := processorTime(p.nodes.PID(i))
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// counts are those of a reader's store.
type counts struct{ reads, roundTrips, hits, misses int64 }

func (c *counts) add(other counts, times int64) {
	c.reads += times * other.reads
	c.roundTrips += times * other.roundTrips
	c.hits += times * other.hits
	c.misses += times * other.misses
}

// The names of metrics of the service.
const (
	metricReads      = "ashlar_store_reads_total"
	metricRoundTrips = "ashlar_store_round_trips_total"
	metricCache      = "ashlar_store_cache_reads_total"
)

// readCounts reads the metrics of a reader.
func readCounts(ctx context.Context, url string) (c counts, err error) {
	text, err := node.Get(ctx, url)
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch {
		case strings.HasPrefix(name, metricReads):
			c.reads += int64(number)
		case strings.HasPrefix(name, metricRoundTrips):
			c.roundTrips += int64(number)
		case strings.HasPrefix(name, metricCache) && strings.Contains(name, `"hit"`):
			c.hits += int64(number)
		case strings.HasPrefix(name, metricCache):
			c.misses += int64(number)
		}
	}
	return c, nil
}
