// Command larger measures what an answer costs where the store is larger than its cache:
//
//	go run ./bench/larger -data DIR -network NAME
//
// It opens an imported network with a cache of a tenth of the store, answers requests of each
// kind about random blocks, accounts and transactions in this process, without HTTP, and
// prints for each answer
//
//	blocks   blocks of the store that were read and decompressed
//	KB       bytes that were read from files, compressed, also those in the page cache
//	µs       processor time of this process
//	allocs   allocations, and their bytes
//
// Blocks, bytes and allocations do not depend on the machine or its load. With -share 0 the
// cache holds the whole store: what remains is the processor time of answering.
//
// As many answers come first that do not count. In a store of more than a few hundred megabytes they do
// not fill the cache. With -before 40000 that many come first.
//
// With -slide 8 it measures answers while older history is removed: it copies the store, moves
// a window over it in eight steps, as a server with a retention does, and answers all the
// while, also between the steps. See slide.go.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/internal/node"
	"ashlar/internal/usage"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/pebble"
)

type options struct {
	path    string // of the network
	share   int64
	answers int
	before  int // answers that do not count; 0: as many as answers
	batch   int
	kinds   *regexp.Regexp
	profile string
	slide   int
}

func main() {
	data := flag.String("data", "", "data directory")
	network := flag.String("network", "", "network in it")
	share := flag.Int64("share", 10, "how many times as large as its cache the store is; 0: all of it is cached")
	answers := flag.Int("answers", 2000, "answers of each kind")
	before := flag.Int("before", 0, "answers of each kind that come first and do not count; 0: as many")
	batch := flag.Int("batch", 1, "calls in a request")
	kinds := flag.String("kinds", ".", "regular expression that selects the kinds")
	profile := flag.String("profile", "", "folder for a processor profile of each kind")
	slide := flag.Int("slide", 0, "steps in which a window is moved; 0: it stays")
	flag.Parse()
	if *data == "" || *network == "" || flag.NArg() > 0 || *share < 0 || *answers < 1 || *before < 0 || *batch < 1 || *slide < 0 {
		log.Fatal("larger: invalid flags (want -data DIR -network NAME and no arguments)")
	}
	chosen, err := regexp.Compile(*kinds)
	if err != nil {
		log.Fatal("larger: ", err)
	}
	o := options{
		path: filepath.Join(*data, "networks", *network), share: *share, answers: *answers, before: *before, batch: *batch,
		kinds: chosen, profile: *profile, slide: *slide,
	}
	if err := run(context.Background(), o); err != nil {
		log.Fatal("larger: ", err)
	}
}

func run(ctx context.Context, o options) error {
	if o.slide > 0 {
		return o.runSlide(ctx)
	}
	size, chain, err := takeSample(ctx, o.path, 0)
	if err != nil {
		return err
	}
	cache := o.cacheOf(size)
	fmt.Printf("store %d MiB, cache %d MiB, %d answers of each kind\n\n", size>>20, cache>>20, o.answers)
	fmt.Printf("| kind | blocks | KB | µs | allocs | bytes |\n|---|---:|---:|---:|---:|---:|\n")
	for i, k := range kinds() {
		if !o.kinds.MatchString(k.name) {
			continue
		}
		used, err := o.measure(ctx, k, uint64(i), cache, chain)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		fmt.Printf("| %s | %.2f | %.1f | %.1f | %.0f | %.0f |\n", k.name, used.blocks, used.read/1000, used.cpu, used.allocs, used.bytes)
	}
	return nil
}

// cacheOf returns the size of the cache for a store.
func (o options) cacheOf(store int64) int64 {
	if o.share > 0 {
		return store / o.share
	}
	return 2 * store
}

// takeSample returns the size of the store, and keys that occur in it from a share of the chain
// on. It uses a cache of its own, so the one that is measured is cold.
func takeSample(ctx context.Context, path string, from float64) (int64, *sampled, error) {
	store, err := pebble.Open(pebble.Options{Path: path})
	if err != nil {
		return 0, nil, err
	}
	defer store.Close()
	n, err := open(ctx, store)
	if err != nil {
		return 0, nil, err
	}
	chain, err := sampleChain(ctx, n.view, from)
	return store.Stats().DiskBytes, chain, err
}

// opened is a network with a server for its methods.
type opened struct {
	archive *archive.Archive
	view    *query.View
	server  *jsonrpc.Server
}

// open opens the network in a store.
func open(ctx context.Context, store kv.Store) (opened, error) {
	a, err := archive.Open(ctx, store)
	if err != nil {
		return opened{}, err
	}
	executor, err := execute.New(a.Genesis().Config)
	if err != nil {
		return opened{}, err
	}
	chain := query.NewChain(a, nil, executor)
	methods, err := api.New(chain, api.Config{}).Methods()
	if err != nil {
		return opened{}, err
	}
	view, err := chain.View()
	return opened{a, view, jsonrpc.NewServer(methods.Handlers(), jsonrpc.Config{Log: slog.New(slog.DiscardHandler)})}, err
}

// measure returns what an answer of a kind costs, with a store that is opened for them. Answers
// to other requests come first.
func (o options) measure(ctx context.Context, k kind, seed uint64, cache int64, chain *sampled) (each used, err error) {
	store, err := pebble.Open(pebble.Options{Path: o.path, Options: kv.Options{CacheBytes: cache}})
	if err != nil {
		return each, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	n, err := open(ctx, store)
	if err != nil {
		return each, err
	}
	m := &maker{rand.New(rand.NewPCG(seed, 1)), chain}
	first := o.requests(k, m, cmp.Or(o.before, o.answers))
	second := o.requests(k, m, o.answers)
	if err := answer(ctx, n.server, first); err != nil {
		return each, err
	}
	stop, err := o.startProfile(k)
	if err != nil {
		return each, err
	}
	before := usageOf(store)
	err = answer(ctx, n.server, second)
	each = usageOf(store).since(before).each(len(second) * o.batch)
	return each, errors.Join(err, stop())
}

// startProfile begins to write the profile of a kind, if one is wanted.
func (o options) startProfile(k kind) (stop func() error, err error) {
	if o.profile == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(o.profile, strings.NewReplacer(" ", "-", ",", "").Replace(k.name)+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// requests makes requests of a kind with some number of answers.
func (o options) requests(k kind, m *maker, answers int) [][]byte {
	all := make([][]byte, 0, answers/o.batch)
	for range max(1, answers/o.batch) {
		var text []byte
		for id := range o.batch {
			call, err := node.Request(id, k.method, k.params(m)...)
			if err != nil {
				panic(err) // the parameters are always valid JSON
			}
			text = append(append(text, ','), call...)
		}
		text = text[1:]
		if o.batch > 1 {
			text = append(append([]byte{'['}, text...), ']')
		}
		all = append(all, text)
	}
	return all
}

func answer(ctx context.Context, server *jsonrpc.Server, requests [][]byte) error {
	var out []byte
	for _, request := range requests {
		out = server.Answer(ctx, request, out[:0])
		if strings.Contains(string(out[:min(len(out), 100)]), `"error"`) {
			return fmt.Errorf("%.300s: %.300s", request, out)
		}
	}
	return nil
}

// used is what this process has used: blocks and bytes of the store, microseconds of processor
// time, allocations and their bytes.
type used struct{ blocks, read, cpu, allocs, bytes float64 }

func usageOf(store kv.Store) used {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	u := used{blocks: float64(store.Stats().CacheMisses), allocs: float64(memory.Mallocs), bytes: float64(memory.TotalAlloc)}
	u.cpu = float64(usage.Read().Processor.Nanoseconds()) / 1000
	if text, err := os.ReadFile("/proc/self/io"); err == nil {
		_, _ = fmt.Sscanf(string(text), "rchar: %g", &u.read) // stays 0 where the system does not count it
	}
	return u
}

func (u used) since(before used) used {
	return used{u.blocks - before.blocks, u.read - before.read, u.cpu - before.cpu, u.allocs - before.allocs, u.bytes - before.bytes}
}

// each returns the share of one of n answers.
func (u used) each(n int) used {
	share := 1 / float64(n)
	return used{u.blocks * share, u.read * share, u.cpu * share, u.allocs * share, u.bytes * share}
}
