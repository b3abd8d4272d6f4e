package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"
	"ashlar/kv/rowcache"
)

// serveCommand makes this program a reader of an embedded store whose statements take time.
const serveCommand = "serve"

// metricsPath is where a reader, like the operator's listener of the service, shows counts.
const metricsPath = "/metrics"

// serve answers questions about the network in a directory until the process is killed.
func serve(args []string) (err error) {
	flags := flag.NewFlagSet(serveCommand, flag.ContinueOnError)
	path := flags.String("store", "", "directory of the network's store")
	listen := flags.String("listen", "", "address")
	statement := flags.Duration("statement", 0, "what a statement takes")
	cache := flags.Int64("cache", 0, "memory for rows, in MiB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx := context.Background()
	store, err := pebble.Open(pebble.Options{Path: *path, Options: kv.Options{CacheBytes: 64 << 20}})
	if err != nil {
		return err
	}
	distant := &kvtest.Distant{Store: store, Statement: *statement}
	cached, err := rowcache.New(ctx, distant, rowcache.Options{Bytes: *cache << 20})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	defer func() { err = errors.Join(err, cached.Close()) }()
	a, err := archive.Open(ctx, cached)
	if err != nil {
		return err
	}
	head, _ := a.Settled()
	cached.Follow(head.Number, nil)
	executor, err := execute.New(a.Genesis().Config)
	if err != nil {
		return err
	}
	methods, err := api.New(query.NewChain(a, nil, executor), api.Config{ClientVersion: "Ashlar/bench"}).Methods()
	if err != nil {
		return err
	}
	answerer := jsonrpc.NewServer(methods.Handlers(), jsonrpc.Config{Log: slog.New(slog.DiscardHandler)})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = w.Write(answerer.Answer(r.Context(), body, nil))
		}
		if err != nil {
			slog.Debug("request not answered", "error", err)
		}
	})
	mux.HandleFunc("GET "+metricsPath, func(w http.ResponseWriter, _ *http.Request) {
		s := cached.Stats()
		fmt.Fprintf(w, "%s{} %d\n%s{} %d\n%s{result=\"hit\"} %d\n%s{result=\"miss\"} %d\n",
			metricReads, distant.Count.Load(), metricRoundTrips, s.RoundTrips, metricCache, s.CacheHits, metricCache, s.CacheMisses)
	})
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}
