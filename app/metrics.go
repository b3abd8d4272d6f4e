package app

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/family"
	"ashlar/jsonrpc"
	"ashlar/kv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the Prometheus metrics. Calls are counted as they happen; everything else is
// collected on each scrape.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec

	answered, failed atomic.Uint64 // calls of all networks
}

// callSeconds returns the histogram bounds for calls, from the time of a cached read to the
// largest sensible time limit.
func callSeconds() []float64 {
	return []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ashlar_calls_total", Help: "Calls that were answered, by the code of their error, or ok.",
		}, []string{"network", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ashlar_call_seconds", Help: "Time that calls took, waiting for their turn included.", Buckets: callSeconds(),
		}, []string{"network", "method"}),
	}
	m.registry.MustRegister(m.calls, m.seconds, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// unknownMethod is the label of calls of unknown methods.
const unknownMethod = "unknown"

// callObserver counts the calls of one network. Its label sets are created in advance, one
// per method.
type callObserver struct {
	metrics  *metrics
	network  string
	byMethod map[string]methodMetrics
}

type methodMetrics struct {
	ok      prometheus.Counter
	seconds prometheus.Observer
}

func (m *metrics) observer(network string, methods []string) jsonrpc.Observer {
	o := &callObserver{metrics: m, network: network, byMethod: make(map[string]methodMetrics, len(methods))}
	for _, method := range methods {
		o.byMethod[method] = methodMetrics{m.calls.WithLabelValues(network, method, "ok"), m.seconds.WithLabelValues(network, method)}
	}
	return o
}

// forget removes the series of a network that is no longer served.
func (m *metrics) forget(network string) {
	of := prometheus.Labels{"network": network}
	m.calls.DeletePartialMatch(of)
	m.seconds.DeletePartialMatch(of)
}

// Called implements jsonrpc.Observer.
func (o *callObserver) Called(_ context.Context, c jsonrpc.Completed) {
	method, code := c.Method, c.Code()
	o.metrics.answered.Add(1)
	if code != 0 {
		o.metrics.failed.Add(1)
	}
	found, ok := o.byMethod[method]
	if !ok {
		o.metrics.calls.WithLabelValues(o.network, unknownMethod, codeLabel(code)).Inc()
		return
	}
	found.seconds.Observe(c.Took.Seconds())
	if code == 0 {
		found.ok.Inc()
		return
	}
	o.metrics.calls.WithLabelValues(o.network, method, codeLabel(code)).Inc()
}

// codeLabel returns a code as a label. The number of different codes is small.
func codeLabel(code int) string {
	if code >= -32768 && code <= 10_000 {
		return strconv.Itoa(code)
	}
	return "other"
}

// serviceCollector collects the state of the service on each scrape.
type serviceCollector struct {
	service *Service
	gauges  gauges

	mu     sync.Mutex
	errors map[string]string // guarded by mu; of the last scrape, by subject
}

type gauges struct {
	sockets, running, waiting, held, addresses, connections   *prometheus.Desc
	refused, dropped                                          *prometheus.Desc
	head, headTime, lag, settled, disk, memory                *prometheus.Desc
	behind, upstreamUsed, upstreamFaults, heard               *prometheus.Desc
	upstreamAside                                             *prometheus.Desc
	judged, consensusRefused, consensusHeld                   *prometheus.Desc
	agreeing, quorum, differs                                 *prometheus.Desc
	ready, stopped, reached, rate, remaining                  *prometheus.Desc
	writable, accountsWritable, keepsRows                     *prometheus.Desc
	lightSlot, lightPeriods, lightFinalized                   *prometheus.Desc
	beaconUsed, beaconFaults                                  *prometheus.Desc
	free, cacheReads, storeReads, roundTrips, backlog, expiry *prometheus.Desc
	unsaved, unreadable, letters                              *prometheus.Desc
	first, firstState, firstProof, removing, removedRows      *prometheus.Desc
	backedUp, backups, backupFailures, backupSize, backupTime *prometheus.Desc
	backupsReadable, certificates                             *prometheus.Desc
	workers, workersStarted, workersEnded, workersMemory      *prometheus.Desc
}

func newServiceCollector(s *Service) *serviceCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ashlar_"+name, help, labels, nil)
	}
	return &serviceCollector{service: s, errors: make(map[string]string), gauges: gauges{
		sockets:     desc("websockets", "WebSocket connections that are open."),
		connections: desc("connections", "Connections of the public listener that are open."),
		dropped:     desc("connections_dropped_total", "Connections that were closed because there were too many."),
		running:     desc("calls_running", "Calls that run now. Heavy calls that wait for nodes in light slots count as light.", "kind"),
		waiting:     desc("calls_waiting", "Calls that wait for their turn.", "kind"),
		held:        desc("held_bytes", "Bytes of bodies and answers that are held, small ones not counted."),
		addresses:   desc("failing_addresses", "Addresses whose requests without a valid key are remembered."),
		refused:     desc("refused_total", "Requests and calls that were refused.", "reason"),
		head:        desc("head_block", "Number of the newest block.", "network"),
		headTime:    desc("head_timestamp_seconds", "Time of the newest block.", "network"),
		lag:         desc("head_age_seconds", "How long ago the newest block was made.", "network"),
		settled:     desc("settled_block", "Number of the newest block that no reorganization can remove.", "network"),
		first:       desc("first_block", "Number of the first block that is stored without a gap up to the newest.", "network"),
		firstState:  desc("first_state_block", "Number of the first block with state.", "network"),
		firstProof:  desc("first_proof_block", "Number of the first block whose state can be proven.", "network"),
		removing:    desc("retention_removing", "Whether older history than the network keeps is being removed: 1, else 0.", "network"),
		removedRows: desc("retention_removed_rows_total", "Rows of older history that were removed.", "network"),
		disk:        desc("store_disk_bytes", "What the network's store takes on disk.", "network"),
		memory:      desc("store_memory_bytes", "What the network's store takes for caches and buffers.", "network"),

		behind:           desc("behind_blocks", "Blocks to catch up with the head that is followed.", "network"),
		ready:            desc("ready", "Whether the network is ready, and what the server needs for all networks: 1, else 0.", "network"),
		stopped:          desc("following_stopped_timestamp_seconds", "Since when following, or the making or settling of a demo's blocks, is stopped by an error of our own; 0 if it is not.", "network"),
		reached:          desc("upstream_reached", "Whether at least one upstream node answers as it should: 1, else 0.", "network"),
		rate:             desc("catch_up_blocks_per_second", "How fast a network that is behind imports blocks; 0 at the head.", "network"),
		remaining:        desc("catch_up_remaining_seconds", "Time until a network that is behind is at the head; 0 if not known, or at the head.", "network"),
		writable:         desc("store_writable", "Whether the network's store accepts writes: 1, else 0.", "network"),
		free:             desc("store_free_bytes", "Free space on the disk of the network's store; none if it is not known.", "network"),
		storeReads:       desc("store_reads_total", "Statements that have read rows from Cassandra.", "network"),
		roundTrips:       desc("store_round_trips_total", "Waits for such statements; those made side by side are one, but for those of walks over tries (`debug_accountRange`, `debug_storageRangeAt`).", "network"),
		cacheReads:       desc("store_cache_reads_total", "Reads of the store's cache, by whether the block was in it.", "network", "result"),
		backlog:          desc("store_backlog_bytes", "Bytes that compactions have to rewrite before the store is in order.", "network"),
		expiry:           desc("certificate_expiry_timestamp_seconds", "When the certificate of the public listener expires.", "name"),
		certificates:     desc("certificates_readable", "Whether all certificates of the public listener can be read, and with tls.key its key fits: 1, else 0."),
		accountsWritable: desc("accounts_store_writable", "Whether the accounts' store accepts writes: 1, else 0."),
		keepsRows:        desc("store_keeps_rows", "Whether rows that are read from Cassandra are kept in store.cache.dir: 1, else 0; none without it.", "network"),

		unsaved:    desc("accounts_unsaved", "Restrictions of keys, accounts and invitations that are in effect but not yet durable."),
		letters:    desc("mails_total", "E-mails to users that were sent, or dropped.", "result"),
		unreadable: desc("accounts_unreadable", "Keys, accounts and invitations that are disabled because their rows cannot be read."),

		backedUp:        desc("backup_timestamp_seconds", "When the last good backup of the store was complete; none if there was none.", "target", "store"),
		backups:         desc("backups_total", "Good backups of the store.", "target", "store"),
		backupFailures:  desc("backup_failures", "Backups of the store that have failed since the last good one.", "target", "store"),
		backupsReadable: desc("backup_records_readable", "Whether all records of how backups went can be read: 1, else 0."),
		backupSize:      desc("backup_size_bytes", "Size of the store in its last good backup.", "target", "store"),
		backupTime:      desc("backup_duration_seconds", "How long the last good backup of the store took, with all stores that it has.", "target", "store"),

		workers:        desc("workers", "Processes for scripts of clients.", "state"),
		workersStarted: desc("workers_started_total", "Processes for scripts of clients that were started."),
		workersEnded:   desc("workers_ended_total", "Processes for scripts of clients that ended in the middle of their work.", "reason"),
		workersMemory:  desc("workers_memory_bytes", "Memory that the processes for scripts of clients take."),

		lightSlot:      desc("light_client_slot", "Slots that the light client knows: the present one by the clock, its head's and the finalized one.", "network", "of"),
		lightPeriods:   desc("light_client_periods_behind", "Periods of sync committees from the finalized slot to the present.", "network"),
		lightFinalized: desc("light_client_finalized_timestamp_seconds", "Time of the last slot that is final for the light client; 0 if none is yet.", "network"),
		beaconUsed:     desc("beacon_node_used", "Whether the light client uses the beacon node: 1, else 0.", "network", "node"),
		beaconFaults:   desc("beacon_node_faults_total", "What the beacon node did wrong: it failed to answer, or sent what is invalid.", "network", "node", "fault"),

		heard:            desc("consensus_heard_timestamp_seconds", "When the consensus client last sent a block or a head; 0 since the start.", "network", "call"),
		judged:           desc("consensus_answers_total", "Blocks and heads of the consensus client, by the status with which they were answered.", "network", "call", "status"),
		consensusRefused: desc("consensus_refused_total", "Requests at the consensus client's listener that were refused.", "network", "reason"),
		consensusHeld:    desc("consensus_held_bytes", "Bytes of answers to the consensus client that are held, small ones not counted.", "network"),

		upstreamUsed:   desc("upstream_used", "Whether the node is or would be followed: 1, else 0.", "network", "upstream"),
		upstreamAside:  desc("upstream_set_aside_until_timestamp_seconds", "Until when the node is set aside because of a false answer; 0: it is not.", "network", "upstream"),
		agreeing:       desc("upstreams_agreeing", "Upstream nodes that agree on the head; 0 if fewer do than must.", "network"),
		quorum:         desc("upstreams_quorum", "Upstream nodes that must agree on a head.", "network"),
		differs:        desc("upstream_differs", "Whether the node has another block than the nodes that agree: 1, else 0.", "network", "upstream"),
		upstreamFaults: desc("upstream_faults_total", "What the node did wrong: it failed to answer, gave what is invalid, or left below the last final block.", "network", "upstream", "fault"),
	}}
}

// Describe implements prometheus.Collector.
func (c *serviceCollector) Describe(out chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, out)
}

// scrape takes the values of one scrape.
type scrape chan<- prometheus.Metric

func (s scrape) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s scrape) counter(d *prometheus.Desc, value uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// Collect implements prometheus.Collector.
func (c *serviceCollector) Collect(out chan<- prometheus.Metric) {
	to := scrape(out)
	c.collectRequests(to)
	c.collectAccounts(to)
	c.collectWorkers(to)
	c.collectBackups(to)
	c.collectCertificates(to)
	c.collectNetworks(to)
}

// collectRequests collects what connections and requests use.
func (c *serviceCollector) collectRequests(to scrape) {
	g, now := &c.gauges, c.service.handler.Stats()
	open, dropped := c.service.server.Connections()
	to.gauge(g.connections, float64(open))
	to.counter(g.dropped, dropped)
	to.gauge(g.sockets, float64(now.Sockets))
	to.gauge(g.running, float64(now.LightRunning), "light")
	to.gauge(g.running, float64(now.HeavyRunning), "heavy")
	to.gauge(g.waiting, float64(now.LightWaiting), "light")
	to.gauge(g.waiting, float64(now.HeavyWaiting), "heavy")
	to.gauge(g.held, float64(now.HeldBytes))
	to.gauge(g.addresses, float64(now.Addresses))
	for reason, n := range now.Refused {
		to.counter(g.refused, n, reason.String())
	}
}

// collectAccounts collects the state of accounts and keys, and of the letters to users.
func (c *serviceCollector) collectAccounts(to scrape) {
	g := &c.gauges
	to.gauge(g.accountsWritable, truth(c.service.accountsRefused() == nil))
	unsaved := 0
	if u := c.service.accounts.Unsaved(); u != nil {
		unsaved = u.Restrictions
	}
	to.gauge(g.unsaved, float64(unsaved))
	if c.service.mail != nil {
		sent, failed := c.service.mail.Counts()
		to.counter(g.letters, sent, "sent")
		to.counter(g.letters, failed, "dropped")
	}
	to.gauge(g.unreadable, float64(len(c.service.accounts.Unreadable())))
}

// collectNetworks collects the state of all networks.
func (c *serviceCollector) collectNetworks(to scrape) {
	g := &c.gauges
	current := c.service.current.Load()
	served, sound := make(map[string]bool), c.service.serverProblem() == nil
	for n := range c.service.asked() {
		served[n.Name] = true
		status, err := n.Status(context.Background())
		if c.changed(networkSubject+n.Name, err) {
			slog.Error("a network's metrics are left out", "network", n.Name, "error", err)
		}
		if err != nil {
			to.gauge(g.ready, 0, n.Name)
			continue
		}
		to.gauge(g.ready, truth(sound && notReady(&status, current.Networks[n.Name].Behind, time.Now()) == nil), n.Name)
		c.collectBlocks(n.Name, status, to)
		if n.store != nil {
			c.collectStore(n.Name, n.store.Stats(), to)
		}
		c.collectSource(n.Name, status, to)
	}
	c.keepNetworks(served)
	for _, u := range c.service.Unserved(context.Background()) {
		if !served[u.Name] {
			to.gauge(g.ready, 0, u.Name)
		}
	}
}

// collectBlocks collects which blocks a network has.
func (c *serviceCollector) collectBlocks(network string, status family.Status, to scrape) {
	g := &c.gauges
	to.gauge(g.head, float64(status.Head), network)
	to.gauge(g.headTime, float64(status.HeadTime), network)
	to.gauge(g.lag, time.Since(time.Unix(int64(status.HeadTime), 0)).Seconds(), network)
	to.gauge(g.settled, float64(status.Settled), network)
	to.gauge(g.first, float64(status.First), network)
	to.gauge(g.firstState, float64(max(status.First, status.FirstState)), network)
	to.gauge(g.firstProof, float64(max(status.First, status.FirstState, status.FirstProof)), network)
	if kept := status.Retention; kept != nil {
		to.gauge(g.removing, truth(kept.Removing), network)
		to.counter(g.removedRows, kept.Rows, network)
	}
}

// collectStore collects what a network's store uses.
func (c *serviceCollector) collectStore(network string, stored kv.Stats, to scrape) {
	g := &c.gauges
	to.gauge(g.writable, truth(stored.Refused == nil), network)
	to.gauge(g.disk, float64(stored.DiskBytes), network)
	to.gauge(g.memory, float64(stored.MemoryBytes), network)
	if stored.FreeBytes != nil {
		to.gauge(g.free, float64(*stored.FreeBytes), network)
	}
	to.gauge(g.backlog, float64(stored.Backlog), network)
	if stored.KeepsRows != nil {
		to.gauge(g.keepsRows, truth(*stored.KeepsRows), network)
	}
	to.counter(g.storeReads, uint64(stored.Reads), network)
	to.counter(g.roundTrips, uint64(stored.RoundTrips), network)
	to.counter(g.cacheReads, uint64(stored.CacheHits), network, "hit")
	to.counter(g.cacheReads, uint64(stored.CacheMisses), network, "miss")
}

// collectWorkers collects the state of the processes for scripts.
func (c *serviceCollector) collectWorkers(to scrape) {
	g, now := &c.gauges, c.service.workers.Stats()
	to.gauge(g.workers, float64(now.Busy), "busy")
	to.gauge(g.workers, float64(now.Idle), "idle")
	to.gauge(g.workersMemory, float64(now.Memory))
	to.counter(g.workersStarted, now.Started)
	for reason, n := range now.Ended {
		to.counter(g.workersEnded, n, string(reason))
	}
}

// truth is 1 for true, else 0.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
