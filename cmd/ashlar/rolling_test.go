package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// instance is a server behind the proxy of TestRollingRestart.
type instance struct {
	t       *testing.T
	config  string
	url     string
	healthy atomic.Bool
	forward *httputil.ReverseProxy
	process *exec.Cmd
	output  *bytes.Buffer
}

func newInstance(t *testing.T, data string) *instance {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	i := &instance{t: t, config: filepath.Join(t.TempDir(), "ashlar.yaml"), url: "http://" + address}
	write(t, i.config, fmt.Sprintf("data: %s\nlisten: %s\n", data, address))
	target, err := url.Parse(i.url)
	if err != nil {
		t.Fatal(err)
	}
	i.forward = httputil.NewSingleHostReverseProxy(target)
	i.forward.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	return i
}

func (i *instance) start() {
	i.t.Helper()
	i.process, i.output = ashlarCommand(context.Background(), "serve", "--config", i.config)
	if err := i.process.Start(); err != nil {
		i.t.Fatal(err)
	}
	for !i.healthy.Load() {
		time.Sleep(10 * time.Millisecond)
	}
}

func (i *instance) stop() {
	i.t.Helper()
	if err := i.process.Process.Signal(syscall.SIGTERM); err != nil {
		i.t.Fatal(err)
	}
	if err := i.process.Wait(); err != nil {
		i.t.Errorf("%v\n%s", err, i.output)
	}
}

// check keeps what is known of the instance's readiness up to date, as a load balancer does.
func (i *instance) check(ctx context.Context) {
	for ctx.Err() == nil {
		response, err := http.Get(i.url + "/readyz")
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		i.healthy.Store(err == nil && response.StatusCode == http.StatusOK)
		time.Sleep(50 * time.Millisecond)
	}
}

// TestRollingRestart restarts two servers behind a reverse proxy, one after the other,
// under load. No request fails: the proxy repeats none, and knows only /readyz.
func TestRollingRestart(t *testing.T) {
	d := newDataDirectory(t)
	second := t.TempDir()
	code, out := runCommand(t, d.key("create", "--name", "load")...)
	if code != exitDone {
		t.Fatal(out)
	}
	var key string
	for _, word := range strings.Fields(out) {
		if len(word) >= 32 && !strings.ContainsAny(word, "/:") {
			key = word
		}
	}
	if err := os.CopyFS(second, os.DirFS(d.path)); err != nil {
		t.Fatal(err)
	}
	instances := []*instance{newInstance(t, d.path), newInstance(t, second)}
	checking, stopChecking := context.WithCancel(t.Context())
	var checks sync.WaitGroup
	defer checks.Wait()
	defer stopChecking()
	for _, i := range instances {
		checks.Go(func() { i.check(checking) })
		i.start()
	}
	var turn atomic.Uint64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := turn.Add(1)
		for next := range uint64(len(instances)) {
			if i := instances[(first+next)%uint64(len(instances))]; i.healthy.Load() {
				i.forward.ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, "no server is ready", http.StatusBadGateway)
	}))
	defer proxy.Close()

	loading, stopLoad := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var answered, failed atomic.Uint64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	for range 8 {
		load.Go(func() {
			for loading.Err() == nil {
				response, err := client.Post(proxy.URL+"/a/v3/"+key, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`))
				var body []byte
				if err == nil {
					body, err = io.ReadAll(response.Body)
					_ = response.Body.Close()
				}
				if err != nil || !strings.Contains(string(body), `"result":"0x7"`) {
					failed.Add(1)
					t.Errorf("%v %s", err, body)
					return
				}
				answered.Add(1)
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	for _, i := range instances {
		before := answered.Load()
		i.stop()
		i.start()
		if answered.Load() == before {
			t.Error("no request was answered during a restart")
		}
	}
	stopLoad()
	load.Wait()
	t.Logf("%d requests answered, %d failed", answered.Load(), failed.Load())
	for _, i := range instances {
		i.stop()
	}
}
