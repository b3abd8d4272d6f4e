package cassandratest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// Witness asks each node all the time for a row that the node has itself, which takes less
// than a millisecond on a machine that has nothing else to do. So it knows when a node got no
// processor, whoever asked: on a busy machine such a node is as good as down.
type Witness struct {
	cluster *Cluster
	started time.Time

	mu    sync.Mutex
	back  [Count]time.Time // guarded by mu; when the test gave each node back; zero: it is away
	delay []delay          // guarded by mu
}

// delay is a time in which a node that was not taken away, or another process, did not
// answer.
type delay struct {
	who      string
	from, to time.Time
	err      error
}

const (
	witnessEvery = 100 * time.Millisecond
	// starved is the time for an answer from which on the machine counts as too busy. To
	// answer a question takes up to eight statements, one after the other, of two nodes each,
	// and a question waits five seconds for them.
	starved = 250 * time.Millisecond
	// witnessTimeout is for one answer, and for a connection.
	witnessTimeout = 10 * time.Second
	witnessTable   = "witness.rows"
)

// NewWitness returns a witness. All nodes must be up.
func NewWitness(ctx context.Context, c *Cluster) (*Witness, error) {
	session, err := c.connect(0)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	for _, statement := range []string{
		fmt.Sprintf("CREATE KEYSPACE IF NOT EXISTS witness WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %d}", Count),
		"CREATE TABLE IF NOT EXISTS " + witnessTable + " (k int PRIMARY KEY)",
	} {
		if err := session.Query(statement).ExecContext(ctx); err != nil {
			return nil, err
		}
		if err := session.AwaitSchemaAgreement(ctx); err != nil {
			return nil, err
		}
	}
	w := &Witness{cluster: c, started: time.Now()}
	for i := range w.back {
		w.back[i] = w.started
	}
	return w, nil
}

// connect opens a session that asks one node only.
func (c *Cluster) connect(i int) (*gocql.Session, error) {
	o := gocql.NewCluster(c.Hosts[i])
	o.HostFilter = gocql.WhiteListHostFilter(c.Hosts[i])
	o.DisableInitialHostLookup = true
	o.NumConns = 1
	o.Timeout, o.WriteTimeout, o.ConnectTimeout = witnessTimeout, witnessTimeout, witnessTimeout
	o.Logger = quiet{}
	return o.CreateSession()
}

// quiet discards what the driver logs of nodes that the test takes away.
type quiet struct{}

func (quiet) Error(string, ...gocql.LogField)   {}
func (quiet) Warning(string, ...gocql.LogField) {}
func (quiet) Info(string, ...gocql.LogField)    {}
func (quiet) Debug(string, ...gocql.LogField)   {}

// Run asks the nodes until ctx is done.
func (w *Witness) Run(ctx context.Context) {
	var asking sync.WaitGroup
	for i := range w.cluster.nodes {
		asking.Go(func() { w.askNode(ctx, i) })
	}
	asking.Wait()
}

// Watch asks another process until ctx is done. ask is a question that it answers by itself.
func (w *Witness) Watch(ctx context.Context, who string, ask func(context.Context) error) {
	w.every(ctx, func() {
		began := time.Now()
		err := ask(ctx)
		w.record(delay{who, began, time.Now(), err})
	})
}

func (w *Witness) every(ctx context.Context, ask func()) {
	for ctx.Err() == nil {
		ask()
		select {
		case <-ctx.Done():
		case <-time.After(witnessEvery):
		}
	}
}

func (w *Witness) askNode(ctx context.Context, i int) {
	var session *gocql.Session
	w.every(ctx, func() {
		began := time.Now()
		var err error
		if session == nil {
			session, err = w.cluster.connect(i)
		}
		if err == nil {
			err = session.Query("SELECT key FROM system.local").Consistency(gocql.One).ExecContext(ctx)
		}
		if err != nil && session != nil {
			go session.Close() // for which the driver waits for ever if it is just connecting again
			session = nil
		}
		if !w.isAway(i, began) {
			w.record(delay{fmt.Sprint("node ", i), began, time.Now(), err})
		}
	})
	if session != nil {
		go session.Close()
	}
}

// isAway reports whether the test had taken a node away at a moment, or has now.
func (w *Witness) isAway(i int, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.back[i].IsZero() || at.Before(w.back[i])
}

// record keeps an answer that was late, or failed.
func (w *Witness) record(d delay) {
	if d.err == nil && d.to.Sub(d.from) < starved {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = append(w.delay, d)
}

// Away says that the test takes a node away.
func (w *Witness) Away(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.back[i] = time.Time{}
}

// Back waits until a node takes part again: each node has all replicas acknowledge a write,
// so none takes another one to be down.
func (w *Witness) Back(ctx context.Context, i int) error {
	if err := w.awaitAll(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.back[i] = time.Now()
	return nil
}

// Starved describes the longest time between two moments in which a node did not answer
// although the test had not taken it away, or another process; empty if all did.
func (w *Witness) Starved(from, to time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest delay
	for _, d := range w.delay {
		if d.from.Before(to) && d.to.After(from) && d.to.Sub(d.from) > longest.to.Sub(longest.from) {
			longest = d
		}
	}
	if longest.who == "" {
		return ""
	}
	return fmt.Sprintf("%s took %v to answer at %s, error %v", longest.who, longest.to.Sub(longest.from).Round(time.Millisecond), longest.from.Format("15:04:05.000"), longest.err)
}

// Share returns the share of the time in which the machine was too busy.
func (w *Witness) Share() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var sum time.Duration
	until := w.started
	for _, d := range w.delay { // in the order of their ends
		if from := max(d.from.UnixNano(), until.UnixNano()); d.to.UnixNano() > from {
			sum += time.Duration(d.to.UnixNano() - from)
			until = d.to
		}
	}
	return sum.Seconds() / time.Since(w.started).Seconds()
}

func (w *Witness) awaitAll(ctx context.Context) error {
	for i := range w.cluster.nodes {
		for {
			err := w.writeAll(ctx, i)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return errors.Join(fmt.Errorf("node %d does not reach all others: %w", i, err), ctx.Err())
			}
			time.Sleep(witnessEvery)
		}
	}
	return nil
}

func (w *Witness) writeAll(ctx context.Context, i int) error {
	session, err := w.cluster.connect(i)
	if err != nil {
		return err
	}
	defer session.Close()
	return session.Query("INSERT INTO "+witnessTable+" (k) VALUES (?)", i).Consistency(gocql.All).ExecContext(ctx)
}
