package abuse

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/node"
)

// maxResident is the maximum memory of the service under attack: its caches, and what its limits
// allow for connections, bodies and answers.
const maxResident = 1 << 30

// TestAbuse attacks a demo with all attacks at the same time.
func TestAbuse(t *testing.T) {
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ashlar := node.Ashlar{Bin: bin, Data: t.TempDir()}
	service, at, err := ashlar.Demo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer service.Kill()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	goal := target{address: u.Host, key: strings.TrimPrefix(u.Path, "/v3/")}
	fair := goal // honest clients have a key of their own
	if fair.key, err = ashlar.CreateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	quiet := ask(t, fair, func() bool { return true }, 500)

	var under atomic.Bool // attack
	under.Store(true)
	var honest sync.WaitGroup
	var stressed []time.Duration
	var resident int64
	honest.Go(func() { stressed = ask(t, fair, under.Load, 0) })
	honest.Go(func() { resident = watch(t, service.PID(), &under) })
	var attackers sync.WaitGroup
	for i, attack := range attacks() {
		attackers.Go(func() {
			begun := time.Now()
			if err := attack.run(t.Context(), newAttacker(goal, i+1)); err != nil {
				t.Errorf("%s: %v", attack.name, err)
			}
			t.Logf("%s took %v", attack.name, time.Since(begun).Round(time.Millisecond))
		})
	}
	attackers.Wait()
	under.Store(false)
	honest.Wait()
	t.Logf("honest requests alone: %s", summary(quiet))
	t.Logf("honest requests under attack: %s", summary(stressed))
	t.Logf("the service held %d MiB at most", resident>>20)
	if resident > maxResident {
		t.Errorf("the service held %d MiB, expected at most %d", resident>>20, maxResident>>20)
	}
	if err := service.Stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(service.Output(), fair.key) {
		t.Error("a key is in the log")
	}
}

// ask sends requests as an honest client does, one after the other, while more returns true. It
// returns the latencies. Every request must succeed.
func ask(t *testing.T, at target, more func() bool, most int) (took []time.Duration) {
	client := node.NewClient("http://" + at.address + "/v3/" + at.key)
	for more() && (most == 0 || len(took) < most) {
		begun := time.Now()
		status, answer, err := client.Post(context.WithoutCancel(t.Context()), []byte(question))
		if err != nil || status != 200 || !strings.Contains(string(answer), "result") {
			t.Errorf("an honest request: %d %s %v", status, answer, err)
			return took
		}
		took = append(took, time.Since(begun))
		time.Sleep(time.Millisecond)
	}
	return took
}

func summary(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
	slices.Sort(took)
	return fmt.Sprintf("%d, p50 %v, p99 %v, longest %v", len(took), took[len(took)/2].Round(time.Microsecond),
		took[len(took)*99/100].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond))
}

// watch returns the peak memory of a process during the attack.
func watch(t *testing.T, pid int, under *atomic.Bool) (most int64) {
	for under.Load() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			t.Skipf("the memory of processes is not available in /proc: %v", err)
		}
		var total, pages int64
		if _, err := fmt.Sscan(string(text), &total, &pages); err != nil {
			t.Error(err)
			return most
		}
		most = max(most, pages*int64(os.Getpagesize()))
		time.Sleep(10 * time.Millisecond)
	}
	return most
}
