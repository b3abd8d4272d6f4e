package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/worker"
)

// TestMain runs a worker if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var err error
	if compiled, err = os.MkdirTemp("", "ashlar-worker-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(compiled)
	os.Exit(code)
}

// compiled is a folder for programs that tests compile.
var compiled string

// serve answers a line with what became of the order in it.
func serve() error {
	if len(os.Args) > 2 && os.Args[2] == "unconfined" {
		return errors.New("confine worker: not permitted")
	}
	if err := worker.Confine(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		err := obey(lines.Text())
		if _, err := fmt.Println(err); err != nil {
			return err
		}
	}
	return nil
}

var (
	kept  [][]byte
	depth int
)

func obey(order string) error {
	switch order {
	case "allocate":
		for {
			kept = append(kept, make([]byte, 1<<20))
		}
	case "a large block":
		kept = append(kept, make([]byte, 1<<30))
	case "much memory":
		kept = append(kept, make([]byte, worker.Memory*3/4))
	case "threads":
		return useThreads()
	case "recurse":
		depth = recurse(0)
	case "spin":
		for {
			depth++
		}
	case "crash":
		panic("crash")
	case "a fault of the runtime":
		die("SIGSEGV: segmentation violation\nPC=0x434e1d m=10 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0xc0000072c0 m=10 mp=0xc000115808 [idle]:\nruntime.(*spanQueue).tryDrain(0x0, 0x0, 0x0)\n")
	case "a fault in C":
		die("SIGSEGV: segmentation violation\nPC=0x7f5a44e1d m=10 sigcode=1 addr=0x0\nsignal arrived during cgo execution\n")
	case "read":
		_, err := os.ReadFile("/etc/passwd")
		return err
	case "write":
		return os.WriteFile("written", nil, 0o600)
	case "connect":
		_, err := net.DialTimeout("tcp", "127.0.0.1:1", time.Second)
		return err
	case "environment":
		return fmt.Errorf("%q", os.Environ())
	case "run":
		return exec.Command("/bin/true").Run()
	case "process":
		return fmt.Errorf("%d", os.Getpid())
	}
	return obeyLinux(order)
}

// die ends this process as Go's runtime does after saying text.
func die(text string) {
	fmt.Fprint(os.Stderr, text)
	os.Exit(2)
}

// useThreads runs twelve threads, each of which makes C allocate, and then takes half of a
// worker's memory.
func useThreads() error {
	var running, all sync.WaitGroup
	running.Add(12)
	for range 12 {
		all.Go(func() {
			runtime.LockOSThread() // and never unlock: the thread ends, so another is started
			running.Done()
			running.Wait()
		})
	}
	all.Wait()
	for range worker.Memory / 2 >> 20 {
		kept = append(kept, make([]byte, 1<<20))
	}
	return nil
}

// recurse calls itself until n is negative, which takes more stack than there is.
func recurse(n int) int {
	if n < 0 {
		return 0
	}
	return recurse(n+1) + n
}

// program returns the path of a program that runs a worker: this one, unless it has the race
// detector, which maps more addresses than a worker may.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if raced {
		path, err = withoutRace()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// withoutRace compiles this test without the race detector.
var withoutRace = sync.OnceValues(func() (string, error) {
	path := filepath.Join(compiled, "worker.test")
	if out, err := exec.Command("go", "test", "-c", "-race=false", "-o", path, "ashlar/worker").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func newPool(t *testing.T, size int) *worker.Pool {
	t.Helper()
	pool := worker.NewPool(size, program(t), "worker")
	t.Cleanup(pool.Close)
	return pool
}

// ask gives a worker an order and returns its answer.
func ask(ctx context.Context, pool *worker.Pool, order string) (answer string, err error) {
	err = pool.Do(ctx, "caller", func(w io.ReadWriter) error {
		if _, err := fmt.Fprintln(w, order); err != nil {
			return err
		}
		answer, err = bufio.NewReader(w).ReadString('\n')
		return err
	})
	return strings.TrimSpace(answer), err
}

// TestEnds: a worker that takes too much ends alone, with the reason, and the next work
// finds a new one.
func TestEnds(t *testing.T) {
	pool := newPool(t, 1)
	for order, want := range map[string]error{
		"allocate": worker.ErrMemory, "a large block": worker.ErrMemory, "recurse": worker.ErrStack, "crash": worker.ErrCrash,
		"a fault of the runtime": worker.ErrMemory, "a fault in C": worker.ErrCrash,
	} {
		if _, err := ask(t.Context(), pool, order); !errors.Is(err, want) {
			t.Errorf("%s: %v, expected %v", order, err, want)
		}
		if answer, err := ask(t.Context(), pool, "nothing"); answer != "<nil>" || err != nil {
			t.Errorf("after %s: %q, %v", order, answer, err)
		}
	}
}

// TestUsedUp: a worker whose work has left it little memory does no other work, which would end
// for lack of it.
func TestUsedUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing limits a worker's memory")
	}
	pool := newPool(t, 1)
	for n, order := range []string{"much memory", "much memory", "nothing", "nothing"} {
		if answer, err := ask(t.Context(), pool, order); answer != "<nil>" || err != nil {
			t.Errorf("%d, %s: %q, %v", n, order, answer, err)
		}
	}
	if got := pool.Stats(); got.Started != 3 || got.Idle != 1 || got.Ended[worker.EndMemory] != 0 {
		t.Errorf("afterwards: %+v, expected three workers, none ended in the middle of its work", got)
	}
}

// TestIdleWorkerEnds: a worker that has ended while it was idle, as the kernel ends one if the machine is short of memory,
// gets no work.
func TestIdleWorkerEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not known")
	}
	pool := newPool(t, 1)
	answer, err := ask(t.Context(), pool, "process")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(answer)
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	for { // until it has ended, which nobody has asked for yet
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(status), ") Z ") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if answer, err := ask(t.Context(), pool, "nothing"); answer != "<nil>" || err != nil {
		t.Errorf("afterwards: %q, %v", answer, err)
	}
	if got := pool.Stats(); got.Started != 2 || got.Busy != 0 || got.Idle != 1 || got.Ended[worker.EndCrash] != 0 {
		t.Errorf("afterwards: %+v, expected two workers, none ended in the middle of its work", got)
	}
}

// TestThreads: the threads that Go starts on a busy machine take no memory from the work.
func TestThreads(t *testing.T) {
	if answer, err := ask(t.Context(), newPool(t, 1), "threads"); answer != "<nil>" || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestConfined: a worker reaches no file, network, program or process.
func TestConfined(t *testing.T) {
	pool := newPool(t, 1)
	for _, order := range append([]string{"read", "write", "connect", "run", "kill"}, linuxOrders()...) {
		answer, err := ask(t.Context(), pool, order)
		if err != nil || !strings.Contains(answer, "not permitted") {
			t.Errorf("%s: %q, %v, expected a refusal", order, answer, err)
		}
	}
}

// TestEnvironment: a worker does not find the server's environment, which may have secrets.
func TestEnvironment(t *testing.T) {
	t.Setenv("ASHLAR_WORKER_TEST", "a secret")
	answer, err := ask(t.Context(), newPool(t, 1), "environment")
	if own, servers := strings.Contains(answer, "TZ=UTC"), strings.Contains(answer, "ASHLAR_WORKER_TEST"); err != nil || !own || servers {
		t.Errorf("the worker finds its own environment: %t, and the server's: %t, %v", own, servers, err)
	}
}

// TestContextEndsWork: work ends when its context does, whatever it does.
func TestContextEndsWork(t *testing.T) {
	pool := newPool(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := ask(ctx, pool, "spin"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, expected %v", err, context.DeadlineExceeded)
	}
	if answer, err := ask(t.Context(), pool, "nothing"); answer != "<nil>" || err != nil {
		t.Errorf("afterwards: %q, %v", answer, err)
	}
}

// TestCallersShare: a caller does not get all workers while another waits.
func TestCallersShare(t *testing.T) {
	pool := newPool(t, 2)
	var group sync.WaitGroup
	defer group.Wait()
	end := make(chan struct{})
	defer close(end)
	began := make(chan struct{}, 4)
	for range 4 {
		group.Go(func() {
			err := pool.Do(t.Context(), "busy", func(io.ReadWriter) error {
				began <- struct{}{}
				<-end
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	<-began
	if err := pool.Do(t.Context(), "newcomer", func(io.ReadWriter) error { return nil }); err != nil {
		t.Error(err)
	}
	if len(began) != 0 {
		t.Errorf("%d more calls of one caller run, expected none", len(began))
	}
}

// TestClosed: a closed pool starts no worker.
func TestClosed(t *testing.T) {
	pool := newPool(t, 1)
	if _, err := ask(t.Context(), pool, "nothing"); err != nil {
		t.Fatal(err)
	}
	pool.Close()
	if _, err := ask(t.Context(), pool, "nothing"); !errors.Is(err, worker.ErrClosed) {
		t.Errorf("%v, expected %v", err, worker.ErrClosed)
	}
	pool = newPool(t, 1)
	err := pool.Do(t.Context(), "caller", func(io.ReadWriter) error { pool.Close(); return nil })
	if s := pool.Stats(); err != nil || s.Started != 1 || s.Busy+s.Idle != 0 {
		t.Errorf("closed while a worker has work: %v, %+v, expected that it ends with it", err, s)
	}
}

// TestStats counts workers, and why they ended.
func TestStats(t *testing.T) {
	pool := newPool(t, 1)
	for _, order := range []string{"nothing", "allocate", "recurse", "crash"} {
		_, _ = ask(t.Context(), pool, order)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, _ = ask(ctx, pool, "spin")
	if err := pool.Do(t.Context(), "caller", func(io.ReadWriter) error { return errors.New("no use") }); err == nil {
		t.Error("failed work succeeded")
	}
	if got := pool.Stats(); got.Busy != 0 || got.Idle != 0 || got.Memory != 0 {
		t.Errorf("without work: %+v", got)
	}
	err := pool.Do(t.Context(), "caller", func(io.ReadWriter) error {
		for runtime.GOOS == "linux" && pool.Stats().Memory < 1<<20 {
			time.Sleep(time.Millisecond) // the process has just been started
		}
		if busy := pool.Stats(); busy.Busy != 1 {
			t.Errorf("during work: %+v", busy)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	want := map[worker.Reason]uint64{
		worker.EndCanceled: 1, worker.EndFailed: 1, worker.EndMemory: 1, worker.EndStack: 1, worker.EndCrash: 1, worker.EndConfine: 0,
	}
	if got := pool.Stats(); got.Idle != 1 || got.Started != 6 || !maps.Equal(got.Ended, want) {
		t.Errorf("afterwards: %+v, expected %v", got, want)
	}
}

// TestProblem: a pool says when its workers do not start, or cannot be confined.
func TestProblem(t *testing.T) {
	for name, command := range map[string][]string{"is not there": {"/nonexistent"}, "cannot be confined": {program(t), "worker", "unconfined"}} {
		pool := worker.NewPool(1, command...)
		t.Cleanup(pool.Close)
		if err := pool.Problem(); err != nil {
			t.Errorf("%s: %v before any work", name, err)
		}
		_, err := ask(t.Context(), pool, "nothing")
		if problem := pool.Problem(); err == nil || problem == nil || !errors.Is(err, problem) {
			t.Errorf("%s: %v, and the problem is %v", name, err, problem)
		}
	}
	if err := newPool(t, 1).Problem(); err != nil {
		t.Error(err)
	}
}
