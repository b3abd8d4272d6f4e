package cassandratest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// node is a process of the cluster.
type node struct {
	command    *exec.Cmd
	management string        // port of nodetool
	ended      chan struct{} // closed when the process has ended
}

func (c *Cluster) folder(i int) string { return filepath.Join(c.dir, fmt.Sprint("node", i)) }

// configure writes the configuration of a node. The nodes of a new cluster need not fetch
// anything from each other, so all of them start at once.
func (c *Cluster) configure(i int) error {
	dir := c.folder(i)
	const tokens = 1 << 32 / Count << 32
	snitch := "SimpleSnitch"
	var topology strings.Builder
	for i, name := range c.datacenters {
		snitch = "PropertyFileSnitch"
		fmt.Fprintf(&topology, "%s=%s:rack1\n", c.Hosts[i], name)
	}
	config := fmt.Sprintf(`cluster_name: ashlar
num_tokens: 1
initial_token: %[3]d
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: [%[1]s/data]
commitlog_directory: %[1]s/commitlog
saved_caches_directory: %[1]s/saved
hints_directory: %[1]s/hints
cdc_raw_directory: %[1]s/cdc
commitlog_sync: periodic
commitlog_sync_period: 10000ms
listen_address: %[2]s
rpc_address: %[2]s
native_transport_port: 9042
storage_port: 7000
endpoint_snitch: %[5]s
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: "%[4]s"}]}]
memtable: {configurations: {trie: {class_name: TrieMemtable}, default: {inherits: trie}}}
memtable_allocation_type: offheap_objects
memtable_offheap_space: 128MiB
memtable_heap_space: 128MiB
sstable: {selected_format: bti}
storage_compatibility_mode: NONE
key_cache_size: 16MiB
file_cache_size: 64MiB
concurrent_reads: 16
concurrent_writes: 16
auto_snapshot: false
`, dir, c.Hosts[i], int64(i)*tokens, c.Hosts[0], snitch) + strings.Join(c.more, "\n") + "\n"
	const logging = `<configuration><appender name="S" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%-5level %date{ISO8601} %F:%L %msg%n</pattern></encoder></appender><root level="INFO"><appender-ref ref="S"/></root></configuration>`
	return errors.Join(
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "cassandra.yaml"), []byte(config), 0o644),
		os.WriteFile(filepath.Join(dir, "logback.xml"), []byte(logging), 0o644),
		os.WriteFile(filepath.Join(dir, "cassandra-topology.properties"), []byte(topology.String()), 0o644),
	)
}

// opened are the packages of the JDK that Cassandra uses and that are closed to programs.
var opened = strings.Fields(`
java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.math
java.base/java.net java.base/java.nio java.base/java.nio.charset java.base/java.nio.file.spi java.base/java.util
java.base/java.util.concurrent java.base/java.util.concurrent.atomic java.base/java.util.concurrent.locks
java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.misc java.base/jdk.internal.module
java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.util.jar java.base/jdk.internal.vm
java.base/sun.nio.ch java.management.rmi/com.sun.jmx.remote.internal.rmi java.management/com.sun.jmx.mbeanserver
java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.rmi/sun.rmi.transport java.rmi/sun.rmi.transport.tcp java.sql/java.sql
jdk.attach/sun.tools.attach jdk.compiler/com.sun.tools.javac.file jdk.management.jfr/jdk.management.jfr
jdk.management/com.sun.management.internal jdk.naming.dns/com.sun.jndi.dns`)

// openedArgs returns the arguments that open these packages.
func openedArgs() (args []string) {
	for _, name := range opened {
		args = append(args, "--add-opens", name+"=ALL-UNNAMED", "--add-exports", name+"=ALL-UNNAMED")
	}
	return args
}

// start starts the process of a node.
func (c *Cluster) start(i int) error {
	dir := c.folder(i)
	agent, err := filepath.Glob(filepath.Join(c.jars, "jamm-*.jar"))
	if err != nil {
		return fmt.Errorf("look for the jamm jar in %s: %w", c.jars, err)
	}
	if len(agent) == 0 {
		return fmt.Errorf("no jamm jar in %s (want the jars of cassandra-all and its dependencies)", c.jars)
	}
	management, err := freePort()
	if err != nil {
		return err
	}
	args := append(openedArgs(), "-Xms512M", "-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=384M", "-javaagent:"+agent[0],
		"-Djdk.attach.allowAttachSelf=true", "-Dio.netty.tryReflectionSetAccessible=true", "-Djava.security.manager=allow",
		"-Dcassandra.storagedir="+dir, "-Dcassandra.logdir="+dir, "-Dcassandra.ring_delay_ms=2000", "-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.superuser_setup_delay_ms=0",
		"-Dcassandra.approximate_time_precision_ms=20",
		fmt.Sprint("-Dcassandra.test.flush_local_schema_changes=", !c.brief),
		"-Dcassandra.jmx.local.port="+management, "-Dcassandra.config=file://"+dir+"/cassandra.yaml",
		"-Dlogback.configurationFile="+dir+"/logback.xml", "-Dcassandra-foreground=yes",
		"-cp", dir+":"+c.jars+"/*", "org.apache.cassandra.service.CassandraDaemon")
	out, err := os.OpenFile(c.log(i), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	n := &node{command: exec.Command("java", args...), management: management, ended: make(chan struct{})}
	n.command.Stdout, n.command.Stderr, n.command.Dir = out, out, dir
	if err := startNode(n.command); err != nil {
		return err
	}
	go func() {
		defer close(n.ended)
		_ = n.command.Wait() // the log says how it ended
	}()
	c.nodes[i] = n
	return nil
}

func (c *Cluster) log(i int) string { return filepath.Join(c.folder(i), "out.log") }

// freePort returns a port that was free a moment ago. It is below those that the system chooses for others, which
// could get it before the node listens.
func freePort() (port string, err error) {
	for range 1000 {
		port = fmt.Sprint(10_000 + rand.IntN(20_000))
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			return port, l.Close()
		}
	}
	return "", err
}

// startTimeout is for all nodes to answer. It is long because tests share processors.
const startTimeout = 10 * time.Minute

// errEnded means that a node has ended by itself.
var errEnded = errors.New("the node has ended")

// Await waits until a node answers.
func (c *Cluster) Await(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(c.Hosts[i], "9042"))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-c.nodes[i].ended:
			return fmt.Errorf("node %s: %w:\n%s", c.Hosts[i], errEnded, c.lastLines(i))
		case <-ctx.Done():
			return fmt.Errorf("node %s does not answer after %v:\n%s", c.Hosts[i], startTimeout, c.lastLines(i))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (c *Cluster) lastLines(i int) string {
	log, err := os.ReadFile(c.log(i))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-2000):])
}

// PID returns the process ID of a node.
func (c *Cluster) PID(i int) int { return c.nodes[i].command.Process.Pid }

// Kill ends a node at once. If it is to be started again, see KeepSchema.
func (c *Cluster) Kill(i int) error {
	n := c.nodes[i]
	if err := n.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-n.ended
	return nil
}

// Terminate asks a node to end, and waits until it has.
func (c *Cluster) Terminate(i int) error {
	n := c.nodes[i]
	if err := n.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-n.ended
	return nil
}

// Restart starts a node that was killed, and waits until it answers.
func (c *Cluster) Restart(i int) error { return errors.Join(c.start(i), c.Await(i)) }
