package cassandratest

import (
	"log"
	"sync"
	"testing"
)

// Main runs the tests of a package whose TestMain calls it, with clusters that start when the
// first test asks for them, and stop after the last. It returns the exit code.
func Main(m *testing.M, clusters ...*Lazy) int {
	defer func() {
		for _, cluster := range clusters {
			if err := cluster.stop(); err != nil {
				log.Print(err)
			}
		}
	}()
	return m.Run()
}

// Lazy is a cluster that starts when it is first needed.
type Lazy struct {
	One bool // it has one node, that of [StartOne]
	// Brief means that changes of the schema need not be on disk at once: each takes a third
	// less processor time then. A node that is killed and started again must have been told to
	// [Cluster.KeepSchema] before: it reads its log of writes after the schema, and drops those
	// of tables that it does not know. One that is terminated writes all to disk.
	Brief bool

	mu      sync.Mutex
	started *Cluster // guarded by mu
	err     error    // guarded by mu
	tried   bool     // guarded by mu
}

// Get returns the cluster. A test is skipped without jars, or fails if every test is
// required.
func (l *Lazy) Get(t testing.TB) *Cluster {
	t.Helper()
	if running := hosts(); running != nil {
		return &Cluster{Hosts: running}
	}
	jars := Jars(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.tried {
		l.tried = true
		if l.One {
			l.started, l.err = StartOne(jars)
		} else {
			l.started, l.err = start(Cluster{jars: jars, brief: l.Brief}, Count, 0)
		}
	}
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l.started
}

func (l *Lazy) stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started == nil {
		return nil
	}
	return l.started.Stop()
}
