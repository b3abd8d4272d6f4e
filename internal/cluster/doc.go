// Package cluster tests the service on a Cassandra cluster of three nodes: processes with
// the roles writer, standby and reader. It contains only tests. They do not run in parallel:
// nodes take long to agree on a schema that several processes change at once.
package cluster
