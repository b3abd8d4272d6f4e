// Command follow measures how soon subscribers are notified of a new block, and how many
// requests are answered per second while blocks arrive. It starts a geth that makes blocks,
// and the service, which follows it over WebSocket.
//
//	go run ./bench/follow -subscribers 1000
//
// It needs geth on PATH or in ASHLAR_GETH. The delay of each notification is measured
//
//   - for subscribers of geth, from the first notification of any of them;
//   - for subscribers of the service, from geth's notification of a further subscriber.
//
// So the service's delay includes the time to fetch, execute, check and store the block,
// and geth's does not.
//
// Everything shares the machine, including the subscribers, which all are in this process.
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
	flag.IntVar(&o.blocks, "blocks", 60, "blocks for which notifications are timed")
	flag.IntVar(&o.txs, "txs", 50, "transactions sent at once, for one block")
	flag.DurationVar(&o.every, "every", 500*time.Millisecond, "time between blocks")
	flag.IntVar(&o.readers, "readers", 8, "connections that send requests")
	flag.DurationVar(&o.length, "length", 10*time.Second, "how long requests are sent")
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
	ctx, cancel := context.WithCancel(ctx) // stops what is still running when a step fails
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

	fmt.Printf("| notified of a block, %d subscribers | p50 | p99 | max |\n| --- | --- | --- | --- |\n", o.subscribers)
	if err := timeNotifications(ctx, o, "by geth, after its first subscriber", chain, chain.socket, ""); err != nil {
		return err
	}
	if err := timeNotifications(ctx, o, "by Ashlar, after a subscriber of geth", chain, node.SocketURL(client.URL), chain.socket); err != nil {
		return err
	}
	fmt.Printf("\n| answers on %d connections | per second | p50 | p99 |\n| --- | --- | --- | --- |\n", o.readers)
	return timeReads(ctx, o, chain, client)
}

// timeNotifications makes blocks and prints how late subscribers at a URL are notified of
// them: after a subscriber at the URL before or, if it is empty, after the first of them.
func timeNotifications(ctx context.Context, o options, what string, chain *chain, at, before string) error {
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
		return fmt.Errorf("%s: no notification arrived", what)
	}
	slices.Sort(late)
	fmt.Printf("| %s | %s | %s | %s |\n", what, percentile(late, 50), percentile(late, 99), percentile(late, 100))
	return nil
}

// percentile returns a percentile of times, which are in ascending order.
func percentile(times []time.Duration, percent int) time.Duration {
	return times[(len(times)-1)*percent/100].Round(10 * time.Microsecond)
}

// timeReads measures requests while no blocks arrive, and while blocks arrive, are settled,
// and are sent to subscribers.
func timeReads(ctx context.Context, o options, chain *chain, client *node.Client) error {
	if err := timeReading(ctx, o, "no blocks arrive", client); err != nil {
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
	what := fmt.Sprintf("a block every %v, sent to %d subscribers", o.every, o.subscribers)
	err = timeReading(ctx, o, what, client)
	stop()
	if failed := <-grown; !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return err
}

// timeReading prints how many requests are answered per second, and how soon.
func timeReading(ctx context.Context, o options, what string, client *node.Client) error {
	rate, took, err := ask(ctx, client, o.readers, o.length)
	if err == nil && len(took) == 0 {
		err = fmt.Errorf("%s: no request was answered", what)
	}
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.0f | %s | %s |\n", what, rate, percentile(took, 50), percentile(took, 99))
	return nil
}
