package cassandratest

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
)

// StoredBytes returns the size of the files that a node has of a keyspace. The node must have
// been terminated, at which it writes what is in memory.
func (c *Cluster) StoredBytes(i int, keyspace string) (sum int64, err error) {
	err = filepath.WalkDir(filepath.Join(c.folder(i), "data", keyspace), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

// EndGrace lets a node drop the marks of removed rows of a keyspace from now on. Cassandra keeps
// them for days.
func (c *Cluster) EndGrace(ctx context.Context, i int, keyspace string) error {
	session, err := c.connect(i)
	if err != nil {
		return err
	}
	defer session.Close()
	tables := session.Query("SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?", keyspace).IterContext(ctx)
	var names []string
	for name := ""; tables.Scan(&name); {
		names = append(names, name)
	}
	if err := tables.Close(); err != nil {
		return err
	}
	for _, name := range names {
		if err := session.Query(fmt.Sprintf("ALTER TABLE %s.%s WITH gc_grace_seconds = 0", keyspace, name)).ExecContext(ctx); err != nil {
			return fmt.Errorf("end the grace of table %s: %w", name, err)
		}
	}
	return nil
}

// Compact has a node rewrite each table of a keyspace into its smallest form.
func (c *Cluster) Compact(ctx context.Context, i int, keyspace string) error {
	return c.nodetool(ctx, i, "compact", keyspace)
}

// KeepSchema has a node write what it knows of the schema to disk, see Brief of [Lazy].
func (c *Cluster) KeepSchema(ctx context.Context, i int) error {
	return c.nodetool(ctx, i, "flush", "system_schema")
}

func (c *Cluster) nodetool(ctx context.Context, i int, command, keyspace string) error {
	dir := c.folder(i)
	args := append(openedArgs(), "-Xmx128M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.home="+dir, "-Dcassandra.storagedir="+dir,
		"-Dlogback.configurationFile="+dir+"/logback.xml", "-cp", c.jars+"/*", "org.apache.cassandra.tools.NodeTool",
		"-h", "127.0.0.1", "-p", c.nodes[i].management, command, keyspace)
	tool := exec.CommandContext(ctx, "java", args...)
	if out, err := tool.CombinedOutput(); err != nil {
		return fmt.Errorf("nodetool %s %s at %s: %w:\n%s", command, keyspace, c.Hosts[i], err, out)
	}
	return nil
}
