// Command cluster measures readers of a cluster: one, two and more, each with a fixed share
// of a processor, under questions of which most concern the last blocks.
//
//	go run ./bench/chaingen -blocks 1000 -txs 40 -out DIR
//	go run ./bench/cluster -chain DIR
//	go run ./bench/cluster -chain DIR -cassandra JARS
//
// Without -cassandra the readers read an embedded store, and wait for each statement; what
// Cassandra and its driver cost is not in the figures. With the folder of Cassandra's jars,
// or with -hosts, they are processes of the service on three real nodes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"ashlar/internal/sample"
)

type options struct {
	chain     string
	readers   []int
	share     float64
	statement time.Duration
	length    time.Duration
	workers   int
	recent    float64
	jars      string
	hosts     []string
	cacheMiB  int
}

func main() {
	log.SetFlags(0)
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		if err := serve(os.Args[2:]); err != nil {
			log.Fatal("cluster: ", err)
		}
		return
	}
	var o options
	readers := flag.String("readers", "1,2,4", "numbers of readers to measure")
	hosts := flag.String("hosts", "", "addresses of running nodes, separated by commas")
	flag.StringVar(&o.chain, "chain", "", "folder with genesis.json and chain.rlp")
	flag.Float64Var(&o.share, "share", 0.25, "processors for each reader")
	flag.DurationVar(&o.statement, "statement", time.Millisecond, "what a statement takes, without real nodes")
	flag.DurationVar(&o.length, "time", 10*time.Second, "how long each number of readers is measured, after as long to warm up")
	flag.IntVar(&o.workers, "workers", 16, "clients of each reader")
	flag.Float64Var(&o.recent, "recent", 0.8, "share of questions about the last 100 blocks")
	flag.StringVar(&o.jars, "cassandra", "", "folder with Cassandra's jars: three real nodes are started")
	flag.IntVar(&o.cacheMiB, "cache", 128, "memory of each reader for rows, in MiB")
	flag.Parse()
	if *hosts != "" {
		o.hosts = strings.Split(*hosts, ",")
	}
	for _, text := range strings.Split(*readers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			log.Fatalf("cluster: invalid -readers %q (want numbers, such as 1,2,4)", *readers)
		}
		o.readers = append(o.readers, n)
	}
	if o.chain == "" || flag.NArg() > 0 || o.share <= 0 {
		log.Fatal("cluster: invalid flags (want -chain DIR, a -share above 0, and no arguments)")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, o); err != nil {
		log.Fatal("cluster: ", err)
	}
}

// measure measures all numbers of readers and prints a table.
func measure(ctx context.Context, o options) (err error) {
	chain, err := sample.Read(o.chain+"/genesis.json", o.chain+"/chain.rlp")
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "bench-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	place, err := prepare(ctx, o, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.close()) }()
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "readers\tanswers/s\tof one reader\tprocessor used\tmean ms\tstatements/answer\tround trips/answer\trows from cache\tnode CPU ms/answer\t")
	var first float64
	for _, n := range o.readers {
		r, err := place.run(ctx, o, chain, n)
		if err != nil {
			return fmt.Errorf("%d readers: %w", n, err)
		}
		rate := float64(r.answers) / r.length.Seconds()
		if first == 0 {
			first = rate / float64(n)
		}
		per := func(count float64) string { return fmt.Sprintf("%.2f", count/float64(max(r.answers, 1))) }
		fmt.Fprintf(out, "%d\t%.0f\t%.2f x\t%.2f\t%.1f\t%s\t%s\t%.1f %%\t%s\t\n", n, rate, rate/first, r.processor.Seconds()/r.length.Seconds(),
			1000*r.latency.Seconds()/float64(max(r.answers, 1)), per(float64(r.counts.reads)), per(float64(r.counts.roundTrips)),
			100*float64(r.counts.hits)/float64(max(r.counts.hits+r.counts.misses, 1)), per(1000*r.nodes.Seconds()))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	size, err := place.size()
	if err != nil {
		return err
	}
	if size > 0 {
		fmt.Printf("each node stores %.1f MiB: %.0f bytes per transaction\n", float64(size)/(1<<20), float64(size)/float64(max(len(chain.Txs), 1)))
	}
	return nil
}
