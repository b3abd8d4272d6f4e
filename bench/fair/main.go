// Command fair measures how one hostile account affects others. It starts the demo, gives
// ten accounts a key each, lets nine ask ordinary questions at a steady rate, and compares
// how late their answers are while the tenth is idle and while it misuses the service in
// one way after the other.
//
//	go run ./bench/fair -time 5s
//	go run ./bench/fair -soak 1h
//
// With -soak it does everything at once, see soak.go.
//
// It prints a table for docs/reliability.md. All clients have addresses of the loopback
// interface, where default rates do not hold: what is measured is how slots, queues, memory
// and filters are divided, without the help of rates.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"ashlar/internal/node"
)

const (
	honestAccounts = 9
	askEvery       = 20 * time.Millisecond // each honest account
)

func main() {
	each := flag.Duration("time", 5*time.Second, "how long each row is measured, once without the hostile account and once with it")
	soak := flag.Duration("soak", 0, "instead of measuring, do everything at once for this long, and fail if live memory, goroutines or files of the service grow")
	only := flag.String("only", "", "measure only ways whose names contain this")
	flag.Parse()
	if *soak > 0 {
		if err := runSoak(context.Background(), *soak); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := run(context.Background(), *each, *only); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, each time.Duration, only string) error {
	demo, err := newDemo(ctx)
	if err != nil {
		return err
	}
	defer demo.remove()
	if err := demo.start(ctx); err != nil {
		return err
	}
	honest, err := demo.honest(ctx)
	if err != nil {
		return err
	}
	keys, err := account(ctx, demo.ashlar, "hostile@example.org", 2)
	if err != nil {
		return err
	}
	fmt.Println("| One account | others' p50, p99 before | while | refused of others | of it |\n|---|---|---|---|---|")
	for _, w := range ways() {
		if !strings.Contains(w.name, only) {
			continue
		}
		address := honestAccounts + 1
		if w.neighbour {
			address = 1
		}
		hostile := newClient(demo.host, keys, address)
		before := measure(ctx, honest, each)
		attack, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- w.run(attack, hostile) }()
		time.Sleep(time.Second) // until it is under way
		during := measure(ctx, honest, each)
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		fmt.Printf("| %s | %s | %s | %d of %d | %d of %d |\n", w.name, before, during, during.failed, during.asked(), hostile.refused.Load(), hostile.asked.Load())
		time.Sleep(2 * time.Second)
	}
	return demo.service.Stop()
}

// account creates an account with some keys.
func account(ctx context.Context, ashlar node.Ashlar, email string, n int) (keys []string, err error) {
	command := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, ashlar.Bin, append(args, "--data", ashlar.Data)...).Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("ashlar %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
		}
		return strings.TrimSpace(string(out)), err
	}
	if _, err := command("account", "create", email); err != nil {
		return nil, err
	}
	for range n {
		key, err := command("key", "create", "--account", email)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// outcome is what some clients have experienced.
type outcome struct {
	took   []time.Duration // of requests that were answered, in ascending order
	failed int
}

func (o outcome) asked() int { return len(o.took) + o.failed }

func (o outcome) String() string {
	if len(o.took) == 0 {
		return "nothing answered"
	}
	at := func(percent int) string {
		return fmt.Sprintf("%.1f ms", float64(o.took[(len(o.took)-1)*percent/100].Microseconds())/1e3)
	}
	return at(50) + ", " + at(99)
}

// measure lets honest clients ask for some time.
func measure(ctx context.Context, honest []*client, each time.Duration) (all outcome) {
	ctx, cancel := context.WithTimeout(ctx, each)
	defer cancel()
	var mu sync.Mutex // guards all
	var group sync.WaitGroup
	for _, c := range honest {
		group.Go(func() {
			one := c.ask(ctx)
			mu.Lock()
			defer mu.Unlock()
			all.took = append(all.took, one.took...)
			all.failed += one.failed
		})
	}
	group.Wait()
	slices.Sort(all.took)
	return all
}

// questions are what honest clients ask: cheap and heavy methods, and filters. The last
// removes the filter that the one before has made.
func questions() []string {
	return []string{
		request("eth_blockNumber"),
		request("eth_getBalance", `"0x0000000000000000000000000000000000000001"`, `"latest"`),
		request("eth_getBlockByNumber", `"latest"`, `true`),
		request("eth_getLogs", `{"fromBlock":"0x20","toBlock":"0x28"}`),
		request("eth_call", `{"to":"0x0000000000000000000000000000000000000004","data":"0x01"}`, `"latest"`),
		request("eth_newFilter", `{"address":"0x0000000000000000000000000000000000000001"}`),
	}
}

func request(method string, params ...string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":[%s]}`, method, strings.Join(params, ","))
}

// ask asks questions at a steady pace until ctx is done. The time of an answer counts from the
// moment at which its question was due, and what is late is asked at once: otherwise an answer that
// takes long would hide those that were not asked meanwhile.
func (c *client) ask(ctx context.Context) (o outcome) {
	all := questions()
	due := time.Now()
	for i := 0; ; i++ {
		due = due.Add(askEvery)
		select {
		case <-ctx.Done():
			return o
		case <-time.After(time.Until(due)):
		}
		question := all[i%len(all)]
		status, answer, err := c.post(context.WithoutCancel(ctx), c.keys[0], strings.NewReader(question))
		if err != nil || status != http.StatusOK || !bytes.Contains(answer, []byte(`"result":`)) {
			o.failed++
			continue
		}
		o.took = append(o.took, time.Since(due))
		if _, id, ok := strings.Cut(string(answer), `"result":"`); ok && strings.Contains(question, "eth_newFilter") {
			id, _, _ = strings.Cut(id, `"`)
			_, _, _ = c.post(context.WithoutCancel(ctx), c.keys[0], strings.NewReader(request("eth_uninstallFilter", `"`+id+`"`)))
		}
	}
}

// newClient returns a client with an address of its own.
func newClient(host string, keys []string, address int) *client {
	c := &client{host: host, keys: keys, dialer: net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 3, byte(address))}}}
	c.http = &http.Client{Transport: &http.Transport{DialContext: c.dialer.DialContext, MaxIdleConnsPerHost: 64, DisableCompression: true}}
	return c
}

// post returns the status and the body of the answer to a request.
func (c *client) post(ctx context.Context, key string, body io.Reader, headers ...string) (int, []byte, error) {
	return c.postTo(ctx, "", key, body, headers...)
}

// postTo is post for the network with a path, such as /devnet; an empty one is the host's.
func (c *client) postTo(ctx context.Context, network, key string, body io.Reader, headers ...string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.host+network+"/v3/"+key, body)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// get returns the body of a page.
func (c *client) get(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.host+path, nil)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
