// Command follow measures how soon those who subscribe are told of a new block, and how
// many questions are answered a second while blocks come. It starts a geth that makes
// blocks, and the service, which follows it over WebSocket.
//
//	go run ./bench/follow -subscribers 1000
//
// It needs geth on PATH or in ASHLAR_GETH. Two things are timed of each block's
// announcement to each subscriber: with geth, from the first of all subscribers that is
// told; with the service, from when geth tells a subscriber that it has beside the
// service. So what the service takes to fetch, execute, check and keep the block is in
// its time, and what geth takes for that is not in geth's.
//
// Everything shares the machine, the subscribers too, which all are of this process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"time"

	"ashlar/internal/node"
)

type options struct {
	subscribers int
	blocks      int
	txs         int
	every       time.Duration
	readers     int
	length      time.Duration
}

func main() {
	log.SetFlags(log.Ltime)
	var o options
	flag.IntVar(&o.subscribers, "subscribers", 1000, "connections that subscribe to newHeads")
	flag.IntVar(&o.blocks, "blocks", 60, "announcements to time")
	flag.IntVar(&o.txs, "txs", 50, "transactions that are sent together")
	flag.DurationVar(&o.every, "every", 500*time.Millisecond, "time between them")
	flag.IntVar(&o.readers, "readers", 8, "connections that ask")
	flag.DurationVar(&o.length, "length", 10*time.Second, "how long questions are asked")
	flag.Parse()
	if flag.NArg() > 0 || o.subscribers < 1 || o.blocks < 1 || o.txs < 1 || o.every <= 0 || o.readers < 1 || o.length <= 0 {
		fmt.Fprintln(os.Stderr, "follow: expected flags only, and 1 or more of everything")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, o); err != nil {
		log.Print("follow: ", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, o options) error {
	ctx, cancel := context.WithCancel(ctx) // ends whatever is still running when a step fails
	defer cancel()
	dir, err := os.MkdirTemp("", "ashlar-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chain, err := startChain(ctx, dir, o.txs)
	if err != nil {
		return err
	}
	defer chain.process.Kill()
	service, client, err := startService(ctx, dir, chain)
	if err != nil {
		return err
	}
	defer service.Kill()

	fmt.Printf("| told of a block, %d subscribers | p50 | p99 | most |\n| --- | --- | --- | --- |\n", o.subscribers)
	if err := timeTold(ctx, o, "by geth, after the first of them", chain, chain.socket, ""); err != nil {
		return err
	}
	if err := timeTold(ctx, o, "by Ashlar, after geth has told", chain, node.SocketURL(client.URL), chain.socket); err != nil {
		return err
	}
	fmt.Printf("\n| answers on %d connections | a second | p50 | p99 |\n| --- | --- | --- | --- |\n", o.readers)
	return timeReads(ctx, o, chain, client)
}

// timeTold makes blocks and prints how late subscribers at a URL are told of them, by
// when a subscriber at another URL is told, or else the first of them.
func timeTold(ctx context.Context, o options, what string, chain *chain, at, before string) error {
	all, err := subscribeAll(ctx, at, o.subscribers)
	if err != nil {
		return err
	}
	defer all.close()
	reference := all
	if before != "" {
		if reference, err = subscribeAll(ctx, before, 1); err != nil {
			return err
		}
		defer reference.close()
	}
	if err := chain.grow(ctx, o.blocks, o.every); err != nil {
		return err
	}
	if err := all.await(ctx, chain.head); err != nil {
		return err
	}
	late, err := all.since(reference.first())
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if len(late) == 0 {
		return fmt.Errorf("%s: nobody was told anything", what)
	}
	slices.Sort(late)
	fmt.Printf("| %s | %s | %s | %s |\n", what, percentile(late, 50), percentile(late, 99), percentile(late, 100))
	return nil
}

// percentile is one of times in ascending order.
func percentile(times []time.Duration, percent int) time.Duration {
	return times[(len(times)-1)*percent/100].Round(10 * time.Microsecond)
}

// timeReads asks questions while nothing happens, and while blocks come, are settled, and
// subscribers are told of them.
func timeReads(ctx context.Context, o options, chain *chain, client *node.Client) error {
	if err := timeReading(ctx, o, "while no blocks come", client); err != nil {
		return err
	}
	all, err := subscribeAll(ctx, node.SocketURL(client.URL), o.subscribers)
	if err != nil {
		return err
	}
	defer all.close()
	growing, stop := context.WithCancel(ctx)
	defer stop()
	grown := make(chan error, 1)
	go func() { grown <- chain.grow(growing, 1<<30, o.every) }()
	what := fmt.Sprintf("while a block comes each %v, and %d subscribers are told", o.every, o.subscribers)
	err = timeReading(ctx, o, what, client)
	stop()
	if failed := <-grown; !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return err
}

// timeReading prints how many questions are answered, and how soon.
func timeReading(ctx context.Context, o options, what string, client *node.Client) error {
	rate, took, err := ask(ctx, client, o.readers, o.length)
	if err == nil && len(took) == 0 {
		err = fmt.Errorf("%s: nothing was answered", what)
	}
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.0f | %s | %s |\n", what, rate, percentile(took, 50), percentile(took, 99))
	return nil
}
