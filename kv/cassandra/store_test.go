package cassandra_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/kv"
	"ashlar/kv/cassandra"
	"ashlar/kv/cassandra/cassandratest"
	"ashlar/kv/kvtest"
)

var nodes = cassandratest.Lazy{Brief: true}

// operations take some milliseconds each.
var operations = flag.Int("operations", 400, "random operations of the contract of stores, see kvtest.Run")

func TestMain(m *testing.M) { os.Exit(cassandratest.Main(m, &nodes)) }

// splitBytes is so small that the tests split partitions.
const splitBytes = 640

// configure returns the configuration of a keyspace of the test cluster. Reads are tried for as long as a busy
// machine may need; Patience(0) sets the usual limit.
func configure(t testing.TB, keyspace string) cassandra.Config {
	t.Helper()
	log := slog.New(slog.NewTextHandler(outputOf(t), nil))
	config := cassandra.Config{Hosts: nodes.Get(t).Hosts, Keyspace: keyspace, SplitBytes: splitBytes, Logger: log}
	config.Patience(await.Patience)
	return config
}

// testOutput is the output of a test until its end. The driver's goroutines may log for a
// moment longer, when a test's output must not be used any more.
type testOutput struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func outputOf(t testing.TB) *testOutput {
	o := &testOutput{to: t.Output()}
	t.Cleanup(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.to = io.Discard
	})
	return o
}

func (o *testOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(p)
}

func connect(t testing.TB, config cassandra.Config) *cassandra.Cluster {
	t.Helper()
	c, err := cassandra.Connect(t.Context(), config, false)
	if err != nil {
		t.Fatal(err)
	}
	return closedAtEnd(t, c)
}

// connectToNew connects to a node that has just started. On a busy machine it accepts connections before it answers in time.
func connectToNew(t testing.TB, config cassandra.Config) *cassandra.Cluster {
	t.Helper()
	for end := time.Now().Add(await.Patience); ; time.Sleep(time.Second) {
		c, err := cassandra.Connect(t.Context(), config, false)
		if err == nil {
			return closedAtEnd(t, c)
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// closedAtEnd closes a connection at the end of the test.
func closedAtEnd(t testing.TB, c *cassandra.Cluster) *cassandra.Cluster {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func open(t testing.TB, c *cassandra.Cluster, name string, o cassandra.Options) *cassandra.Store {
	t.Helper()
	s, err := c.Open(t.Context(), name, kv.Options{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newName returns a name that no store has.
func newName(t testing.TB) string {
	return strings.ReplaceAll(fmt.Sprint(t.Name(), " ", os.Getpid()), "/", " ")
}

func TestContract(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	kvtest.Run(t, *operations, func(t *testing.T) kv.Store { return open(t, c, newName(t), cassandra.Options{}) })
}

func TestReopen(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	kvtest.RunReopenOnce(t, func(t *testing.T) func(t *testing.T) kv.Store {
		name := newName(t)
		return func(t *testing.T) kv.Store { return open(t, c, name, cassandra.Options{}) }
	})
}

func TestOpen(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	name := newName(t)
	if _, err := c.Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{}); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a store to be read that does not exist: %v, expected ErrNotFound", err)
	}
	s := open(t, c, name, cassandra.Options{})
	put(t, s, versions, "p", 1, "one")
	reader, err := c.Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := reader.NewBatch()
	b.Put(versions, []byte("p"), 2, nil)
	if err := reader.Write(t.Context(), b); err == nil {
		t.Error("a store that is open for reading takes a write")
	}
	refused := errors.New("refused")
	accept := func(r kv.Reader) error {
		if value, err := r.Get(t.Context(), versions, []byte("p"), 1, nil); string(value) != "one" {
			t.Errorf("Accept sees %q, %v", value, err)
		}
		return refused
	}
	if _, err := c.Open(t.Context(), name, kv.Options{Accept: accept}, cassandra.Options{}); !errors.Is(err, refused) {
		t.Errorf("a store that is not accepted: %v", err)
	}
	names, err := c.Names(t.Context())
	if err != nil || !strings.Contains(strings.Join(names, ","), name) {
		t.Errorf("names %q, %v, expected %s among them", names, err, name)
	}
	if err := errors.Join(reader.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if err := c.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	s = open(t, c, name, cassandra.Options{})
	defer s.Close()
	if _, err := s.Get(t.Context(), versions, []byte("p"), 1, nil); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("row of a store that was removed: %v, expected ErrNotFound", err)
	}
}

// TestForeign tries keyspaces that hold something else.
func TestForeign(t *testing.T) {
	for i, test := range []struct {
		change []string // KS stands for the keyspace
		want   string
	}{
		{[]string{"CREATE TABLE IF NOT EXISTS KS.other (a int PRIMARY KEY)", "DROP TABLE IF EXISTS KS.ashlar_schema"}, kv.ErrForeign.Error()},
		{[]string{"UPDATE KS.ashlar_schema SET version = 77 WHERE part = 'ashlar'"}, "schema version 77 (want 2)"},
	} {
		config := configure(t, fmt.Sprintf("foreign_%d_%d", os.Getpid(), i))
		c := connect(t, config)
		for _, change := range test.change {
			if err := c.Define(t.Context(), strings.ReplaceAll(change, "KS", config.Keyspace)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := cassandra.Connect(t.Context(), config, false); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("after %q: %v, expected %s", test.change, err, test.want)
		}
		if err := c.Define(t.Context(), "DROP KEYSPACE IF EXISTS "+config.Keyspace); err != nil {
			t.Error(err)
		}
	}
	if _, err := cassandra.Connect(t.Context(), configure(t, "nothing_here"), true); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a keyspace to be read that does not exist: %v, expected ErrNotFound", err)
	}
}

// TestOldSchema opens a keyspace of the version before.
func TestOldSchema(t *testing.T) {
	config := configure(t, fmt.Sprintf("old_%d", os.Getpid()))
	c := connect(t, config)
	for _, change := range []string{"DROP TABLE KS.ashlar_posts", "UPDATE KS.ashlar_schema SET version = 1 WHERE part = 'ashlar'"} {
		if err := c.Define(t.Context(), strings.ReplaceAll(change, "KS", config.Keyspace)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "schema version 1 (want 2): start a writer of this version first"
	if _, err := cassandra.Connect(t.Context(), config, true); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a reader of an old keyspace: %v, expected %s", err, want)
	}
	s := open(t, connect(t, config), newName(t), cassandra.Options{Shared: true})
	defer s.Close()
	if err := s.Post(t.Context(), "name", []byte("value"), time.Minute); err != nil {
		t.Error(err)
	}
	if posts, err := s.Posts(t.Context()); err != nil || string(posts["name"]) != "value" || len(posts) != 1 {
		t.Errorf("posts %q, %v", posts, err)
	}
	if err := c.Define(t.Context(), "DROP KEYSPACE IF EXISTS "+config.Keyspace); err != nil {
		t.Error(err)
	}
}

var (
	transient = &kv.Table{ID: 0xfb, Name: "kvtest_transient", Kind: kv.List, Transient: true}
	versions  = &kv.Table{ID: 0xfd, Name: "kvtest_versions", Kind: kv.Versions}
	list      = &kv.Table{ID: 0xfe, Name: "kvtest_list", Kind: kv.List}
)

func put(t testing.TB, s kv.Store, table *kv.Table, partition string, sort uint64, value string) {
	t.Helper()
	b := s.NewBatch()
	b.Put(table, []byte(partition), sort, []byte(value))
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// TestIdentity makes a keyspace again. What was kept of its rows elsewhere is not valid then.
func TestIdentity(t *testing.T) {
	config := configure(t, "identity")
	identity := func() string {
		c := connect(t, config)
		s := open(t, c, "store", cassandra.Options{})
		defer s.Close()
		if err := s.Prepare(t.Context(), []*kv.Table{versions, list}); err != nil {
			t.Fatal(err)
		}
		put(t, s, versions, "p", 1, "one")
		id, err := s.Identity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := identity()
	if again := identity(); again != first {
		t.Errorf("the keyspace is %s when it is opened again, expected %s", again, first)
	}
	if err := connect(t, configure(t, "contract")).Define(t.Context(), "DROP KEYSPACE IF EXISTS identity"); err != nil {
		t.Fatal(err)
	}
	if again := identity(); again == first {
		t.Errorf("another keyspace of the same name has the identity %s, too", again)
	}
}

// TestReplication checks how the keyspaces that Connect creates are replicated.
func TestReplication(t *testing.T) {
	for replication, want := range map[int]string{0: "3", 2: "2"} {
		config := configure(t, fmt.Sprintf("replicated_%d_%d", os.Getpid(), replication))
		config.Replication = replication
		c := connect(t, config)
		if got, err := c.Replication(t.Context()); err != nil || got["datacenter1"] != want {
			t.Errorf("replication %d: %v, %v, expected %s in the datacenter", replication, got, err, want)
		}
		if err := c.Define(t.Context(), "DROP KEYSPACE IF EXISTS "+config.Keyspace); err != nil {
			t.Error(err)
		}
	}
}
