package cassandratest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// Witness asks each node all the time for a row that the node has itself. So it knows when a
// node did not answer, whoever asked: on a busy machine a node that gets no processor for
// some seconds is as good as down.
type Witness struct {
	cluster *Cluster
	started time.Time

	mu    sync.Mutex
	back  [Count]time.Time // guarded by mu; when the test gave each node back; zero: it is away
	delay []delay          // guarded by mu
}

// delay is a time in which a node that was not taken away did not answer.
type delay struct {
	node     int
	from, to time.Time
}

const (
	witnessEvery = 100 * time.Millisecond
	// starved is the time for an answer from which on a node counts as down.
	starved = time.Second
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
		asking.Go(func() { w.ask(ctx, i) })
	}
	asking.Wait()
}

// ask asks one node.
func (w *Witness) ask(ctx context.Context, i int) {
	var session *gocql.Session
	defer func() {
		if session != nil {
			session.Close()
		}
	}()
	for ctx.Err() == nil {
		began := time.Now()
		var err error
		if session == nil {
			session, err = w.cluster.connect(i)
		}
		if err == nil {
			if err = session.Query("SELECT key FROM system.local").Consistency(gocql.One).ExecContext(ctx); err != nil {
				session.Close()
				session = nil
			}
		}
		if took := time.Since(began); took >= starved || err != nil {
			w.record(delay{i, began, time.Now()})
		}
		select {
		case <-ctx.Done():
		case <-time.After(witnessEvery):
		}
	}
}

func (w *Witness) record(d delay) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if back := w.back[d.node]; !back.IsZero() && !d.from.Before(back) {
		w.delay = append(w.delay, d)
	}
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

// Starved describes a node that did not answer between two moments although the test had not
// taken it away; empty if all did.
func (w *Witness) Starved(from, to time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.delay {
		if d.from.Before(to) && d.to.After(from) {
			return fmt.Sprintf("node %d took %v to answer at %s", d.node, d.to.Sub(d.from).Round(time.Millisecond), d.from.Format("15:04:05.000"))
		}
	}
	return ""
}

// Share returns the share of the time in which some node did not answer.
func (w *Witness) Share() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var sum time.Duration
	until := w.started
	for _, d := range w.delay { // ordered by their ends
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
